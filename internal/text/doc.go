// Package text has what messages for people are put together from.
package text
