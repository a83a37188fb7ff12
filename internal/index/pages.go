package index

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// pageSize of live lists: small enough for a cluster that is slow, and a tenth of a
// second's work for one that is not.
const pageSize = 500

// Pages lists, live, page by page: all pages are of one state of the cluster. A page
// that fails, or whose state has expired meanwhile, ends it with an error.
func Pages(ctx context.Context, r client.Reader, list client.ObjectList, page func(), opts ...client.ListOption) error {
	next := ""
	for {
		// What a page holds may be kept: the next one is not decoded into it.
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
