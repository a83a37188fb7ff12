package reflectedclass

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/xylem-io/xylem/internal/index"
	"github.com/xylem-io/xylem/internal/member"
	"github.com/xylem-io/xylem/internal/reflection"
)

// MemberName is the name of the controller that runs for each member.
const MemberName = "member_class"

// minRecordInterval is the minimum time between two changes to a member's offer. Each change may cause a write
// to the host for every class, and only the member's admin controls how many changes there are.
const minRecordInterval = 2 * time.Second

// memberReconciler records the classes of one member.
type memberReconciler struct {
	*member.Link
	classes *reflection.MemberClasses
	// lastRecorded is the time of the last change. It needs no lock, because there is one worker.
	lastRecorded time.Time
}

// Setup adds the controller member_class to a Link. Its only request names the registration and
// covers all of the member's classes, because the limit on their number applies to the total.
func Setup(link *member.Link, classes *reflection.MemberClasses) error {
	o := &memberReconciler{Link: link, classes: classes}
	request := reconcile.Request{NamespacedName: index.ClusterScopedKey(link.Registration)}
	return link.AddController(MemberName, 1, o,
		link.LeafObjectSource(&storagev1.StorageClass{}, func(context.Context, client.Object) []reconcile.Request {
			return []reconcile.Request{request}
		}),
		source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
			queue.Add(request) // record the offer even if the member has no classes
			return nil
		}),
	)
}

// Reconcile records all of the member's classes from its synced cache.
func (o *memberReconciler) Reconcile(ctx context.Context, _ reconcile.Request) (reconcile.Result, error) {
	if wait := o.lastRecorded.Add(minRecordInterval).Sub(o.Clock.Now()); wait > 0 {
		return reconcile.Result{RequeueAfter: wait}, nil
	}
	var list storagev1.StorageClassList
	if err := o.Cache.List(ctx, &list); err != nil {
		return reconcile.Result{}, fmt.Errorf("list the member's storage classes: %w", err)
	}
	var host storagev1.StorageClassList
	if err := o.Host.List(ctx, &host); err != nil {
		return reconcile.Result{}, fmt.Errorf("list the host's storage classes: %w", err)
	}
	classes := make([]reflection.MemberClass, 0, len(list.Items))
	for i := range list.Items {
		if class, ok := reflection.MemberClassOf(&list.Items[i]); ok {
			classes = append(classes, class)
		}
	}
	slices.SortFunc(classes, func(a, b reflection.MemberClass) int { return strings.Compare(a.Name, b.Name) })
	now := o.Clock.Now()
	news, again := o.classes.RecordClasses(o.Registration, reflection.ObservedClasses{
		ClusterID: o.ClusterID, Classes: classes, Published: reflection.PublishedClassNames(o.Registration, host.Items), At: now,
	})
	if news {
		o.lastRecorded = now
	}
	return reconcile.Result{RequeueAfter: again}, nil
}
