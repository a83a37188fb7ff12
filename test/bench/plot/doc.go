// Command plot draws the results of test/bench as PNG files. It is a separate module so that
// the product does not depend on a plotting library.
package main
