// Command plot draws the results of test/bench as PNG files. It is a module of its
// own so that the product's does not depend on what draws.
package main
