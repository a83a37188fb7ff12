package doctor

import (
	"context"
	"fmt"

	"github.com/xylem-io/xylem/internal/cli/inspect"
)

// checkOf is one check of the host (F is *Facts) or of a member (F is *Member). To add a check, write a
// file with its name, the facts that only it needs, and these functions, and add it to a list below.
type checkOf[F any] struct {
	name Check
	// read adds what only this check needs to the facts. It is nil if others already read everything.
	read func(ctx context.Context, r *inspect.Reader, facts F)
	// judge returns no finding if the facts were not read, and an OK if there is no problem. It is pure.
	judge func(facts F) ([]Finding, error)
}

// hostChecks are the checks of the host, in the order in which their findings are printed.
var hostChecks = []checkOf[*Facts]{
	kubernetesCheck, pluginCheck, definitionCheck, managerCheck, rightsCheck, policiesCheck, driverCheck, controlPlaneCheck, clockCheck, domainCheck,
	membersCheck, tokensCheck, nodeAPICheck, daemonSetsCheck, snapshotsCheck, leftoversCheck,
}

// memberChecks are the checks of a member, in the order in which their findings are printed.
var memberChecks = []checkOf[*Member]{
	connectionCheck, memberKubernetesCheck, memberClockCheck, memberDomainCheck, memberLeftoversCheck, memberPoliciesCheck, memberRightsCheck, fenceCheck, memberSnapshotsCheck,
}

// infallible adapts the judge function of a check that cannot fail.
func infallible[F any](judge func(F) []Finding) func(F) ([]Finding, error) {
	return func(facts F) ([]Finding, error) { return judge(facts), nil }
}

// readFacts reads what the checks need, a few at a time.
func readFacts[F any](ctx context.Context, r *inspect.Reader, checks []checkOf[F], facts F) {
	var reads []func()
	for _, c := range checks {
		if c.read != nil {
			reads = append(reads, func() { c.read(ctx, r, facts) })
		}
	}
	inspect.RunReadsTogether(reads...)
}

// judgeFacts evaluates the facts with all checks.
func judgeFacts(f *Facts) (*Checkup, error) {
	all, err := runJudges(hostChecks, f, "")
	if err != nil {
		return nil, err
	}
	for i := range f.Members {
		m := &f.Members[i]
		m.host = &f.Host
		found, err := runJudges(memberChecks, m, m.shownName())
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return NewCheckup(all, f.Missing), nil
}

func runJudges[F any](checks []checkOf[F], facts F, cluster string) ([]Finding, error) {
	var all []Finding
	for _, c := range checks {
		found, err := c.judge(facts)
		if err != nil {
			return nil, fmt.Errorf("check %s: %w", c.name, err)
		}
		for _, finding := range found {
			finding.Check = c.name
			if finding.Cluster == "" {
				finding.Cluster = cluster
			}
			all = append(all, finding)
		}
	}
	return all, nil
}
