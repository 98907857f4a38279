"""The class report: what a whole class did in one unit, on a page, as a table and as data. Changes no mark."""
