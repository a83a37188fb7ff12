package command

import (
	"io"
	"os"
	"path/filepath"
	"testing"

	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/clock"
)

// TestMemberFlags checks that a context alone selects a member in kubectl's own kubeconfig, wherever
// kubectl finds it.
func TestMemberFlags(t *testing.T) {
	write := func(name string, servers map[string]string) string {
		config := clientcmdapi.NewConfig()
		for context, server := range servers {
			config.Clusters[context] = &clientcmdapi.Cluster{Server: server}
			config.Contexts[context] = &clientcmdapi.Context{Cluster: context}
		}
		config.CurrentContext = "host"
		file := filepath.Join(t.TempDir(), name)
		if err := clientcmd.WriteToFile(*config, file); err != nil {
			t.Fatal(err)
		}
		return file
	}
	own := write("own", map[string]string{"host": "https://host", "member": "https://member"})
	other := write("other", map[string]string{"host": "https://other", "member": "https://other-member"})
	for name, tc := range map[string]struct {
		member            Member
		variable, kubectl string
		given             bool
		want, flag        string
	}{
		"no flag":                             {variable: own, flag: "--member-context", want: "https://host"},
		"a context in KUBECONFIG":             {member: Member{Context: "member"}, variable: own, given: true, flag: "--member-context", want: "https://member"},
		"a context in --kubeconfig":           {member: Member{Context: "member"}, variable: other, kubectl: own, given: true, flag: "--member-context", want: "https://member"},
		"a kubeconfig":                        {member: Member{Kubeconfig: other}, variable: own, kubectl: own, given: true, flag: "--member-kubeconfig", want: "https://other"},
		"a context in a kubeconfig":           {member: Member{Kubeconfig: other, Context: "member"}, variable: own, given: true, flag: "--member-kubeconfig", want: "https://other-member"},
		"a context that the kubeconfig lacks": {member: Member{Kubeconfig: other, Context: "another"}, variable: own, given: true, flag: "--member-kubeconfig"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(clientcmd.RecommendedConfigPathEnvVar, tc.variable)
			env := NewEnv(genericiooptions.IOStreams{In: os.Stdin, Out: io.Discard, ErrOut: io.Discard}, clock.RealClock{})
			*env.Host.KubeConfig = tc.kubectl
			got := ""
			config, err := tc.member.Config(env)
			if err == nil {
				got = config.Host
			}
			if got != tc.want || tc.member.Given() != tc.given || tc.member.ContextFlag() != tc.flag {
				t.Errorf("got server %q (%v), given %t, flag %s", got, err, tc.member.Given(), tc.member.ContextFlag())
			}
		})
	}
}
