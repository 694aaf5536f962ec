"""The key tables of the pages are what the program prints."""
import unittest

import key_tables


class KeyTables(unittest.TestCase):
    maxDiff = None

    def test_every_table_is_what_the_program_prints(self):
        for page, section, table in key_tables.tables():
            with self.subTest(page=page.relative_to(key_tables.ROOT), section=section):
                self.assertEqual(table, key_tables.printed(section),
                                 "tests/link/key_tables.py writes the tables anew")

    def test_every_section_stands_on_one_page(self):
        sections = [section for _, section, _ in key_tables.tables()]
        self.assertEqual(len(sections), len(set(sections)), "a section stands on two pages")
        for section in sections:
            head = f"| `{section}` | what it is |" if "." in section else "| key | default |"
            self.assertIn(head, key_tables.printed(section))
        self.assertGreaterEqual(len(sections), 12)

    def test_every_marker_is_paired(self):
        for page in key_tables.pages():
            text = page.read_text()
            for what in ("keys", "values"):
                self.assertEqual(text.count(f"<!-- {what}: "), text.count(f"<!-- /{what} -->"), page)


if __name__ == "__main__":
    unittest.main()
