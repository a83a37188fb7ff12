package wording

import "strings"

// NearestWord returns the known word that is closest to a misspelled word by edit distance, or "" if
// none is close. It ignores case.
func NearestWord(word string, known []string) string {
	// Up to a third of the name may differ. The part before a slash is a common prefix and does not
	// count.
	name := word[strings.LastIndex(word, "/")+1:]
	best, nearest := len(name)/3+1, ""
	for _, k := range known {
		if d := editDistance(strings.ToLower(word), strings.ToLower(k)); d < best {
			best, nearest = d, k
		}
	}
	return nearest
}

// editDistance returns the Levenshtein distance in bytes.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, cost)
		}
	}
	return row[len(b)]
}
