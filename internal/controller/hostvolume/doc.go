// Package hostvolume is the controller host_volume. It releases a leaf volume that an admin
// abandons (annotation xylem.io/abandon), whether or not the member can be reached; nothing
// in the member is touched, and the data stay there. It also deletes promises that no
// member ever had, when no claim needs them.
package hostvolume
