package doctor

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// reviewsAtOnce is the maximum number of concurrent reviews.
const reviewsAtOnce = 8

// rightsOfAccount checks which of the needed and excessive permissions an account has, with
// SubjectAccessReviews.
func rightsOfAccount(ctx context.Context, cluster kubernetes.Interface, of Account, needs, excess []authorizationv1.ResourceAttributes) (Rights, error) {
	return reviewRights(ctx, needs, excess, func(ctx context.Context, a authorizationv1.ResourceAttributes) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:" + of.Namespace + ":" + of.Name,
			Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + of.Namespace, "system:authenticated"},
			ResourceAttributes: &a,
		}}
		answer, err := cluster.AuthorizationV1().SubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return answer.Status.Allowed, nil
	})
}

// rightsOfClient is like rightsOfAccount, but checks the account whose credentials the client uses.
func rightsOfClient(ctx context.Context, cluster kubernetes.Interface, needs, excess []authorizationv1.ResourceAttributes) (Rights, error) {
	return reviewRights(ctx, needs, excess, func(ctx context.Context, a authorizationv1.ResourceAttributes) (bool, error) {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &a}}
		answer, err := cluster.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return answer.Status.Allowed, nil
	})
}

// reviewRights checks each permission, a few at a time, until a request fails.
func reviewRights(ctx context.Context, needs, excess []authorizationv1.ResourceAttributes, may func(context.Context, authorizationv1.ResourceAttributes) (bool, error)) (Rights, error) {
	all := slices.Concat(needs, excess)
	allowed := make([]bool, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(reviewsAtOnce)
	for i, a := range all {
		group.Go(func() (err error) {
			allowed[i], err = may(ctx, a)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return Rights{}, err
	}
	rights := Rights{Read: true}
	for i, a := range all {
		switch {
		case i < len(needs) && !allowed[i]:
			rights.Lacks = append(rights.Lacks, a)
		case i >= len(needs) && allowed[i]:
			rights.Excess = append(rights.Excess, a)
		}
	}
	return rights, nil
}
