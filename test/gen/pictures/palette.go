package main

// palette contains the colors of one variant of a picture.
type palette struct {
	// Name is the suffix of the file's name.
	Name string
	// Back is the background color, Fore is for text, and Dim is for secondary text. Box and Line
	// are the fill and border of boxes.
	Back, Fore, Dim, Box, Line string
	// Host and Member mark the objects on each side.
	Host, Member string
	// Red, Green and Yellow are the colors of the terminal.
	Red, Green, Yellow string
}

// Members returns the names of the members that the pictures show.
func (palette) Members() []string { return []string{"cluster38", "cluster39"} }

// palettes are similar to GitHub's light and dark themes.
var palettes = []palette{
	{
		Name: "light", Back: "#ffffff", Fore: "#1f2328", Dim: "#59636e", Box: "#f6f8fa", Line: "#d1d9e0",
		Host: "#0969da", Member: "#1a7f37", Red: "#d1242f", Green: "#1a7f37", Yellow: "#9a6700",
	},
	{
		Name: "dark", Back: "#0d1117", Fore: "#f0f6fc", Dim: "#9198a1", Box: "#151b23", Line: "#3d444d",
		Host: "#4493f8", Member: "#3fb950", Red: "#f85149", Green: "#3fb950", Yellow: "#d29922",
	},
}
