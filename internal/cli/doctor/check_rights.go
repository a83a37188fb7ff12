package doctor

import (
	"context"
	"fmt"

	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/xylem-io/xylem/internal/check"
	"github.com/xylem-io/xylem/internal/cli/inspect"
	"github.com/xylem-io/xylem/internal/wording"
)

// CheckRights is the name of this check.
const CheckRights Check = "Rights"

var (
	rightsCheck = checkOf[*Facts]{name: CheckRights, read: readHostRights, judge: infallible(func(f *Facts) []Finding {
		return judgeRights(f.Host.Rights, f.Host.Account.Name, "")
	})}
	memberRightsCheck = checkOf[*Member]{name: CheckRights, read: readMemberRights, judge: infallible(func(m *Member) []Finding {
		if !m.isRegisteredAndRead() {
			return nil
		}
		return judgeRights(m.Rights, m.Account.Name, m.shownName())
	})}
)

// Rights are permissions of an account.
type Rights struct {
	// Lacks are permissions that Xylem needs but the account lacks. Excess are dangerous permissions
	// that the account has but Xylem does not need.
	Lacks, Excess []authorizationv1.ResourceAttributes
	Read          bool
}

func readHostRights(ctx context.Context, r *inspect.Reader, f *Facts) {
	h := &f.Host
	needs, err := shippedHostRights(h.Account)
	if err == nil {
		var identities []authorizationv1.ResourceAttributes
		identities, err = identityRights(h.Registrations.Items, h.Nodes.Items, h.Account)
		needs = append(needs, identities...)
	}
	if err != nil {
		r.RecordMissing("the permissions of the manager's account", err)
		return
	}
	found, err := rightsOfAccount(ctx, r.Raw, h.Account, needs, excessivePermissions())
	h.Rights = rightsOrMiss(r, found, err)
}

// readMemberRights reads the permissions of the manager's account. The account itself may not ask for
// those of other accounts.
func readMemberRights(ctx context.Context, r *inspect.Reader, m *Member) {
	needs, err := shippedMemberRights(m.Account)
	if err != nil {
		r.RecordMissing("the permissions of the manager's account", err)
		return
	}
	var found Rights
	if m.Own {
		found, err = rightsOfAccount(ctx, r.Raw, m.Account, needs, excessivePermissions())
	} else {
		found, err = rightsOfClient(ctx, r.Raw, needs, excessivePermissions())
	}
	m.Rights = rightsOrMiss(r, found, err)
}

// rightsOrMiss returns the permissions that check found, or reports that they cannot be read.
func rightsOrMiss(r *inspect.Reader, found Rights, err error) Rights {
	if err != nil {
		r.RecordMissing("the permissions of the manager's account", err)
	}
	return found
}

// judgeRights evaluates an account's permissions.
func judgeRights(r Rights, account, cluster string) []Finding {
	if !r.Read {
		return nil
	}
	var lacks, withheld, identities []string
	for _, a := range r.Lacks {
		if isOfNodeIdentity(a) {
			identities = append(identities, check.DescribePermission(a))
			continue
		}
		if cluster == "" && isChosenByAdmin(a) {
			withheld = append(withheld, check.DescribePermission(a))
			continue
		}
		lacks = append(lacks, check.DescribePermission(a))
	}
	var found []Finding
	if len(lacks) > 0 {
		toDo := "Install the chart with rbac.create=true, or bind the roles in config/rbac to the account."
		if cluster != "" {
			toDo = "Run `kubectl xylem register` for the member again, or upgrade the xylem-member chart in the member."
		}
		found = append(found, problem(Error, fmt.Sprintf("the manager's account %q lacks %s that it needs: %s", account, wording.CountNoun(len(lacks), "permission"), enumerateFirst(lacks)), toDo))
	}
	if len(identities) > 0 {
		found = append(found, problem(Error, fmt.Sprintf("the manager's account %q may not act as the virtual nodes of registrations with apiServer, so their Pods get no tokens. It lacks %s", account, enumerateFirst(identities)),
			"Run `kubectl xylem register` for the member again with --api-server."))
	}
	if len(r.Excess) > 0 {
		excess := r.Excess
		if excess[0].Verb == "*" { // the wildcard includes the others
			excess = excess[:1]
		}
		found = append(found, problem(Warning, fmt.Sprintf("the manager's account %q has permissions that Xylem never needs: %s. An attacker who has the account's token could use them", account, enumerateFirst(describePermissions(excess))),
			"Remove the binding that grants these permissions."))
	}
	if len(found) > 0 {
		return found
	}
	if len(withheld) > 0 {
		return []Finding{passed("the manager's account %q has the permissions that it needs, but can read Secrets and ConfigMaps only in chosen namespaces", account)}
	}
	return []Finding{passed("the manager's account %q has the permissions that it needs, and no dangerous ones", account)}
}

func describePermissions(all []authorizationv1.ResourceAttributes) []string {
	var names []string
	for _, a := range all {
		names = append(names, check.DescribePermission(a))
	}
	return names
}
