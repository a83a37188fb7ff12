package mutation

const podAct = "internal/controller/rootpod/act.go"

// Pods returns defects of root_pod, which test/model/pods finds.
func Pods() []Mutation {
	return []Mutation{
		{
			Name: "pod-withdrawn-from-cache", Class: "a Pod whose leaf ran and was deleted gets a second leaf, because the cache of leaf claims lags",
			Edits:  []Edit{{podAct, "if still, err := r.recheckWithdrawnLive(ctx, o); err != nil || !still {", "if still, err := true, error(nil); err != nil || !still {"}},
			Caught: []string{"I3: the record of a leaf whose containers have started is removed"},
		},
		{
			Name: "pod-created-from-cache", Class: "a Pod gets a second leaf, because the cache of Pods lacks the record of the first",
			Edits:  []Edit{{podAct, "\tlive, err := r.readRootPodLive(ctx, o.Root)\n\tif err != nil {", "\tlive, err := o.HostWriter, error(nil)\n\tif err != nil {"}},
			Caught: []string{"I3: a Pod whose containers have started gets a second leaf", "a leaf is created for a Pod that is gone"},
		},
		{
			Name: "pod-finished-from-cache", Class: "a deleted Pod is removed while its leaf exists, because the cache of leaves lags",
			Edits:  []Edit{{podAct, "if gone, err := r.NewProver().ProveLeafPodGone(ctx, root); err != nil || !gone {", "if gone, err := true, error(nil); err != nil || !gone {"}},
			Caught: []string{"a Pod is removed while its leaf exists"},
		},
		{
			Name: "pod-removed-from-cache", Class: "the leaf of a Pod is deleted, because the cache shows its claim in another member",
			Edits:  []Edit{{podAct, "if still, err := r.recheckRemoveLive(ctx, o); err != nil || !still {", "if still, err := true, error(nil); err != nil || !still {"}},
			Caught: []string{"the leaf of a Pod that runs, or is to run, in this member is deleted"},
		},
		{
			Name: "pod-left", Class: "a leaf is left although its Pod is gone",
			Edits:  []Edit{{"internal/controller/rootpod/lifecycle/next.go", "case o.Leaf != nil && (o.Root == nil || o.Root.UID != o.Origin.UID):", "case o.Leaf != nil && o.Root != nil && o.Root.UID != o.Origin.UID:"}},
			Caught: []string{"a leaf is left although its Pod is gone"},
		},
		{
			Name: "pod-marked-forever", Class: "the status of a Pod that was pushed is written again and again",
			Edits:  []Edit{{"internal/controller/rootpod/lifecycle/next.go", `|| o.Root.Annotations[v1alpha1.AnnotationLeafUID] == "" || o.conditionShowsUnbindable() {`, `|| o.Root.Annotations[v1alpha1.AnnotationLeafUID] == "" || !o.conditionShowsUnbindable() {`}},
			Caught: []string{"I5: root_pod writes forever, without a change"},
		},
	}
}
