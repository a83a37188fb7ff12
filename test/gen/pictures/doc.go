// Command pictures draws the README's pictures, each in a light and a dark variant, in
// .github/images:
//
//   - name-light.svg and name-dark.svg from each name.svg.tmpl, a Go template of an SVG whose
//     colors come from the palette;
//   - demo-light.svg and demo-dark.svg from demo.txt, a part of the output of `make demo` with
//     its colors.
//
// With --recording FILE, it first extracts that part from FILE, which the demo writes if
// DEMO_RECORD names it. `make demo-recording` does both. With --verify, it writes nothing and
// fails if a picture differs from its source. With --chromium, it renders the pictures in that
// browser and fails if a text loses its spaces, leaves the picture or overlaps another text.
package main
