"""The commands that a page tells people to type: its ```bash blocks. Tests execute them as they
stand there. A block that no test took is untested."""


class PageCommands:
    def __init__(self, page):
        """`page`: its path. `left` holds the blocks in the page's order, until a test
        takes them."""
        self.page = page
        self.left = []  # (heading, block)
        for section in page.read_text().split("\n## "):
            heading, text = section.split("\n", 1)
            self.left += [(heading, block.split("\n```")[0])
                          for block in text.split("```bash\n")[1:]]

    def take(self, heading):
        """The next block under this heading."""
        for i, (name, block) in enumerate(self.left):
            if name == heading:
                del self.left[i]
                return block
        raise AssertionError(f"{self.page} has no more commands under '{heading}'")
