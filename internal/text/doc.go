// Package text formats parts of messages for people: counts, quoted names and suggestions.
package text
