package index

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize is the maximum number of objects per page of a live list. Even a slow cluster can serve
// a page of this size, and a fast one takes a tenth of a second.
const pageSize = 500

// ListPages lists live, page by page, and calls page for each page. All pages show the same state of
// the cluster. If a page fails, or the state has expired, ListPages returns an error.
func ListPages(ctx context.Context, r client.Reader, list client.ObjectList, page func(), opts ...client.ListOption) error {
	next := ""
	for {
		// The caller may keep a page's items, so do not decode the next page into them.
		if err := meta.SetList(list, nil); err != nil {
			return err
		}
		if err := r.List(ctx, list, append(opts, client.Limit(pageSize), client.Continue(next))...); err != nil {
			return err
		}
		page()
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}
