"""Data on servers that refuse what others allow: HEAD, or saying that a file is not there."""
import unittest

from range_server import RangeServer
from sources_test import SourcesTest


class Servers(SourcesTest):
    def test_a_server_that_refuses_head_is_asked_for_the_first_byte(self):
        far = self.shards(self.far)
        (self.far / "a.txt").write_bytes(b"hello world " * 50)
        (self.far / "one").mkdir()
        (self.far / "one" / "b.txt").write_bytes(b"hello world " * 50)
        local = self.prints(far / "a.txt", "--block", 16)
        with RangeServer(far) as server:
            for i, status in enumerate((405, 403, 501, 400)):
                server.head = status
                self.assertEqual(self.prints(f"{server.url}/a.txt", "--block", 16,
                                             cache=self.scratch / f"one {i}"), local)
            (far / "a.txt").unlink()
            (far / "manifest.txt").write_text("".join(
                f"{path.name}\n" for path in sorted(far.glob("*.tar"))))
            self.assertEqual(self.prints(server.url, cache=self.scratch / "many"), self.prints(far))
            server.head = 404
            self.assert_refused(f"{server.url}/one/b.txt", 66, names=f"{server.url}/one/b.txt",
                                cache=self.scratch / "none")

    def test_a_server_that_answers_any_name_has_no_manifest(self):
        self.far.mkdir()
        (self.far / "a.txt").write_bytes(b"hello world " * 50)
        local = self.prints(self.far / "a.txt", "--block", 16)
        with RangeServer(self.far) as server:
            for i, answer in enumerate((400, 405, 500, "page")):
                server.unknown = answer
                self.assertEqual(self.prints(f"{server.url}/a.txt", "--block", 16,
                                             cache=self.scratch / f"cache {i}"), local, answer)


if __name__ == "__main__":
    unittest.main()
