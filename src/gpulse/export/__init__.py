"""The page with the data of one moment as a static site."""
