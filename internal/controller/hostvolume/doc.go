// Package hostvolume is the controller host_volume: it lets go of a leaf volume
// when an admin says so (annotation xylem.io/abandon), whether or not the member
// can be reached. Nothing in the member is touched: the data stay there. And it
// ends promises that no member ever had, when no claim wants them any more.
package hostvolume
