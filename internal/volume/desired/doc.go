// Package desired computes the objects that an observed volume needs: its leaf PV, its host PV, and
// its leaf claim. It is pure.
package desired
