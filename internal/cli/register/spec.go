package register

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"github.com/xylem-io/xylem/api/v1alpha1"
	"github.com/xylem-io/xylem/internal/mirror"
)

// Names of the flags for the ClusterRegistration.
const (
	flagPolicy          = "deregistration-policy"
	flagNode            = "node-name"
	flagClasses         = "class"
	flagPrefix          = "class-prefix"
	flagReflect         = "reflect-classes"
	flagSelector        = "reflect-selector"
	FlagPodCIDRs        = "pod-cidrs"
	flagReachable       = "reachable"
	flagPriorityClasses = "priority-class"
	// flagAPIServer is the name of the flag for the host's API server.
	flagAPIServer = "api-server"
	// FlagNamespaces is the name of the flag for the labels that a namespace must have.
	FlagNamespaces = "namespaces"
)

// specFlags contains the values of the flags. Fields whose flags are not set stay unchanged.
type specFlags struct {
	policy, node, prefix, selector, namespaces, apiServer string
	classes, podCIDRs, reachable, priorityClasses         []string
	reflect                                               bool

	given    func(flag string) bool
	mapping  []v1alpha1.ClassMapping
	priority []v1alpha1.ClassMapping
	chosen   *metav1.LabelSelector
	required map[string]string
}

// AddFlags adds the flags to a command.
func (s *specFlags) AddFlags(c *cobra.Command) {
	flags := c.Flags()
	s.given = flags.Changed
	policies := []string{string(v1alpha1.DeregistrationRetain), string(v1alpha1.DeregistrationDrain)}
	flags.StringVar(&s.policy, flagPolicy, policies[0], "What happens to claims and volumes in the member on deregistration: "+strings.Join(policies, " keeps them, ")+" waits until the last claim is deleted.")
	flags.StringVar(&s.node, flagNode, "", "Name of the virtual node. Default: "+v1alpha1.DefaultNodeNamePrefix+"NAME. The name cannot be changed later.")
	flags.StringArrayVar(&s.classes, flagClasses, nil, "HOST=MEMBER: map host class HOST to the member's class MEMBER. Can be repeated.")
	flags.StringVar(&s.prefix, flagPrefix, v1alpha1.DefaultClassPrefix, "Prefix of host classes: with "+v1alpha1.DefaultClassPrefix+", host class "+v1alpha1.DefaultClassPrefix+"ssd maps to the member's class ssd. If empty, the prefix rule is disabled.")
	flags.BoolVar(&s.reflect, flagReflect, false, "Publish the member's classes in the host under the same names.")
	flags.StringVar(&s.selector, flagSelector, "", "Label selector for the classes that --reflect-classes publishes. Default: all classes.")
	flags.StringSliceVar(&s.podCIDRs, FlagPodCIDRs, nil, "Ranges of the member's Pod IPs that the host shows, as CIDRs, or "+v1alpha1.AllPodCIDRs+". Specify ranges that the host's network can reach. Default: none.")
	flags.StringSliceVar(&s.reachable, flagReachable, nil, "Ranges of addresses outside the member that its Pods can reach, as CIDRs, or "+v1alpha1.AllPodCIDRs+". Services in the member get these endpoints. Default: none.")
	flags.StringArrayVar(&s.priorityClasses, flagPriorityClasses, nil, "HOST=MEMBER: map the host's PriorityClass HOST to the member's PriorityClass MEMBER. Can be repeated. The member's admin must also grant the class (value priorityClasses of the chart xylem-member).")
	flags.StringVar(&s.apiServer, flagAPIServer, "", "Address of the host's API server for Pods in the member, such as https://10.0.0.1:6443: they get tokens of their ServiceAccounts in the host. If empty, they get none. Creates a ClusterRole that lets the manager request tokens as the virtual node, and needs Kubernetes 1.36 or later in the host.")
	flags.StringVar(&s.namespaces, FlagNamespaces, "", "KEY=VALUE[,KEY=VALUE]: labels that a host namespace must have for the member to accept its Pods and claims. If empty, no label is required. Without this flag, an existing rule is kept.")
	for flag, values := range map[string][]string{flagPolicy: policies} {
		if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // impossible: the flag was just added
		}
	}
}

// Validate validates the flags.
func (s *specFlags) Validate() error {
	if policies := []string{string(v1alpha1.DeregistrationRetain), string(v1alpha1.DeregistrationDrain)}; !slices.Contains(policies, s.policy) {
		return fmt.Errorf("--%s=%s is unknown: use %s", flagPolicy, s.policy, strings.Join(policies, " or "))
	}
	if err := errors.Join(s.validateClasses(), validateRanges(FlagPodCIDRs, s.podCIDRs), validateRanges(flagReachable, s.reachable)); err != nil {
		return err
	}
	if s.apiServer != "" {
		if _, err := mirror.APIServerOf(s.apiServer, nil); err != nil {
			return fmt.Errorf("--%s is malformed: %w", flagAPIServer, err)
		}
	}
	if err := s.validateNamespaces(); err != nil {
		return err
	}
	if s.selector != "" {
		if !s.reflect {
			return fmt.Errorf("--%s has no effect alone: also specify --%s", flagSelector, flagReflect)
		}
		chosen, err := metav1.ParseToLabelSelector(s.selector)
		if err != nil {
			return fmt.Errorf("--%s=%s is malformed: %w", flagSelector, s.selector, err)
		}
		s.chosen = chosen
	}
	return nil
}

// validateClasses parses the mappings of StorageClasses and PriorityClasses.
func (s *specFlags) validateClasses() (err error) {
	if s.mapping, err = parseMappings(flagClasses, s.classes); err != nil {
		return err
	}
	if s.priority, err = parseMappings(flagPriorityClasses, s.priorityClasses); err != nil {
		return err
	}
	for _, mapping := range s.priority {
		if strings.HasPrefix(mapping.Member, "system-") {
			return fmt.Errorf("--%s=%s=%s is not allowed: the member's class must not begin with system-, because Pods of the host must not preempt the member's own system workloads", flagPriorityClasses, mapping.Host, mapping.Member)
		}
	}
	return nil
}

func parseMappings(flag string, pairs []string) ([]v1alpha1.ClassMapping, error) {
	var mappings []v1alpha1.ClassMapping
	for _, pair := range pairs {
		host, member, ok := strings.Cut(pair, "=")
		if !ok || host == "" || member == "" {
			return nil, fmt.Errorf("--%s=%s is malformed: use HOST=MEMBER, with a class name on each side", flag, pair)
		}
		mappings = append(mappings, v1alpha1.ClassMapping{Host: host, Member: member})
	}
	return mappings, nil
}

// validateRanges validates ranges of addresses.
func validateRanges(flag string, ranges []string) error {
	for _, cidr := range ranges {
		if _, err := netip.ParsePrefix(cidr); err != nil && (cidr != v1alpha1.AllPodCIDRs || len(ranges) > 1) {
			return fmt.Errorf("--%s=%s is malformed: use CIDRs, such as 10.8.0.0/16, or %s alone", flag, cidr, v1alpha1.AllPodCIDRs)
		}
	}
	return nil
}

// labelsLimit is the CRD's limit on the number of required labels.
const labelsLimit = 16

// validateNamespaces parses the labels that a namespace must have.
func (s *specFlags) validateNamespaces() error {
	s.required = nil
	if s.namespaces == "" {
		return nil
	}
	required := map[string]string{}
	for _, pair := range strings.Split(s.namespaces, ",") {
		key, value, ok := strings.Cut(pair, "=")
		var problems []string
		switch _, twice := required[key]; {
		case !ok:
			problems = []string{"the label has no \"=\""}
		case twice:
			problems = []string{"an earlier label has the same key"}
		default:
			problems = append(validation.IsQualifiedName(key), validation.IsValidLabelValue(value)...)
		}
		if len(problems) > 0 {
			return fmt.Errorf("--%s=%s is malformed because of %q: %s. Use KEY=VALUE[,KEY=VALUE], such as example.com/team=payments", FlagNamespaces, s.namespaces, pair, strings.Join(problems, "; "))
		}
		required[key] = value
	}
	if len(required) > labelsLimit {
		return fmt.Errorf("--%s has %d labels, but a registration allows at most %d. Use fewer", FlagNamespaces, len(required), labelsLimit)
	}
	s.required = required
	return nil
}

// RequiresLabels reports whether the flags set labels that a namespace must have.
func (s *specFlags) RequiresLabels() bool { return len(s.required) > 0 }

func caBundleOf(server *v1alpha1.APIServerSpec) []byte {
	if server == nil {
		return nil
	}
	return server.CABundle
}

// ApplyTo sets the fields whose flags are set.
func (s *specFlags) ApplyTo(to *v1alpha1.ClusterRegistrationSpec) {
	if s.given(flagPolicy) {
		to.Deregistration = v1alpha1.DeregistrationPolicy(s.policy)
	}
	if s.given(flagNode) {
		to.Node.Name = s.node
	}
	if s.given(FlagPodCIDRs) {
		to.Node.PodCIDRs = s.podCIDRs
	}
	if s.given(flagReachable) {
		to.Services.Reachable = s.reachable
	}
	if s.given(flagPriorityClasses) {
		to.Pods.PriorityClasses = s.priority
	}
	if s.given(flagAPIServer) {
		if s.apiServer == "" {
			to.APIServer = nil
		} else {
			to.APIServer = &v1alpha1.APIServerSpec{URL: s.apiServer, CABundle: caBundleOf(to.APIServer)}
		}
	}
	if s.given(FlagNamespaces) {
		to.Namespaces.MatchLabels = s.required
	}
	if s.given(flagClasses) {
		to.Storage.Classes = s.mapping
	}
	if s.given(flagPrefix) {
		to.Storage.Prefix = ptr.To(s.prefix)
	}
	if s.given(flagReflect) {
		to.Storage.Reflect.Enabled = s.reflect
	}
	if s.given(flagSelector) {
		to.Storage.Reflect.Selector = s.chosen
	}
}
