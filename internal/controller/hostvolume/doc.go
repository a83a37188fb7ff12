// Package hostvolume contains the controller host_volume. It releases a leaf volume that an admin
// abandons (annotation xylem.io/abandon), whether or not the member can be reached. It changes
// nothing in the member, which keeps the data. It also deletes promises that no member ever had,
// when no claim needs them.
package hostvolume
