package podstatus

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/xylem-io/xylem/internal/mirror"
	"github.com/xylem-io/xylem/internal/mirror/mirrortest"
)

// If an EndpointSlice contains a loopback or link-local address, for example, the host's API server
// rejects the whole slice, including other members' addresses. Other special addresses reach
// services near a client (I7, I8).
func TestSpecialAddressesAreNotShown(t *testing.T) {
	m := mirrortest.Member
	m.PodCIDRs = mirror.AllPodCIDRs
	for reported, want := range map[string]string{
		"10.8.0.1": "10.8.0.1", "192.168.7.7": "192.168.7.7", "100.64.0.1": "100.64.0.1", "8.8.8.8": "8.8.8.8",
		"fd00:8::1": "fd00:8::1", "2001:db8::1": "2001:db8::1", "2600:1F18::0001": "2600:1f18::1",

		"": "", "x": "", "010.1.1.1": "", "10.8.0.1/24": "", "10.8.0": "",
		"0.0.0.0": "", "0.1.2.3": "", "127.0.0.1": "", "127.8.9.10": "", "169.254.169.254": "", "169.254.170.2": "",
		"224.0.0.1": "", "239.1.1.1": "", "240.0.0.1": "", "255.255.255.255": "", "192.0.0.192": "", "100.100.100.200": "", "168.63.129.16": "",
		"::": "", "::1": "", "fe80::1": "", "fe80::1%eth0": "", "fd00:8::1%eth0": "", "ff02::1": "", "fec0::1": "",
		"::ffff:10.0.0.1": "", "::ffff:0:10.0.0.1": "", "::10.0.0.1": "", "64:ff9b::10.0.0.1": "", "64:ff9b:1::1": "", "2001::1": "", "2002:a00:1::1": "",
		"fd00:ec2::254": "", "fd00:ec2::23": "", "fd20:ce::254": "", "fd00:c1::a9fe:a9fe": "", "fd00:42::42": "",
	} {
		t.Run(reported, func(t *testing.T) {
			leaf := &corev1.Pod{Status: corev1.PodStatus{
				HostIP: reported, HostIPs: []corev1.HostIP{{IP: reported}}, PodIP: reported, PodIPs: []corev1.PodIP{{IP: reported}},
			}}
			got := TranslatePodStatus(mirrortest.NewRootPod(corev1.PodSpec{}), leaf, m)
			if got.PodIP != want || got.HostIP != want {
				t.Errorf("podIP %q, hostIP %q, want %q", got.PodIP, got.HostIP, want)
			}
			if shown := len(got.PodIPs) == 1 && len(got.HostIPs) == 1; shown != (want != "") {
				t.Errorf("podIPs %v, hostIPs %v; want one of each if the address is shown, otherwise none", got.PodIPs, got.HostIPs)
			}
		})
	}
}

// The host's API server accepts a status only if hostIP and podIP are the first entries of hostIPs
// and podIPs, and each list has at most one address of each family.
func TestAddressesAgree(t *testing.T) {
	m := mirrortest.Member
	m.PodCIDRs = mirror.AllPodCIDRs
	for name, tc := range map[string]struct{ reported, want []string }{
		"dual stack":                    {[]string{"10.0.0.5", "fd00:8::5"}, []string{"10.0.0.5", "fd00:8::5"}},
		"the first address is special":  {[]string{"240.0.0.5", "fd00:8::5"}, []string{"fd00:8::5"}},
		"the second address is special": {[]string{"10.0.0.5", "fe80::5"}, []string{"10.0.0.5"}},
		"both addresses are special":    {[]string{"240.0.0.5", "fe80::5"}, nil},
		"two addresses of one family":   {[]string{"10.0.0.5", "10.0.0.6", "fd00:8::5"}, []string{"10.0.0.5", "fd00:8::5"}},
		"one address":                   {[]string{"10.0.0.5"}, []string{"10.0.0.5"}},
	} {
		t.Run(name, func(t *testing.T) {
			leaf := &corev1.Pod{Status: corev1.PodStatus{HostIP: tc.reported[0], PodIP: tc.reported[0]}}
			for _, ip := range tc.reported {
				leaf.Status.HostIPs = append(leaf.Status.HostIPs, corev1.HostIP{IP: ip})
				leaf.Status.PodIPs = append(leaf.Status.PodIPs, corev1.PodIP{IP: ip})
			}
			got := TranslatePodStatus(mirrortest.NewRootPod(corev1.PodSpec{}), leaf, m)
			var hostIPs, podIPs []string
			for _, ip := range got.HostIPs {
				hostIPs = append(hostIPs, ip.IP)
			}
			for _, ip := range got.PodIPs {
				podIPs = append(podIPs, ip.IP)
			}
			if !slices.Equal(hostIPs, tc.want) || !slices.Equal(podIPs, tc.want) {
				t.Errorf("hostIPs %v, podIPs %v, want %v", hostIPs, podIPs, tc.want)
			}
			if first := append(tc.want, "")[0]; got.HostIP != first || got.PodIP != first {
				t.Errorf("hostIP %q, podIP %q, want %q", got.HostIP, got.PodIP, first)
			}
		})
	}
}

func TestHiddenPodIP(t *testing.T) {
	leaf := func(ips ...string) *corev1.Pod {
		pod := &corev1.Pod{}
		for _, ip := range ips {
			pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: ip})
		}
		return pod
	}
	for name, tc := range map[string]struct {
		m    mirror.Member
		leaf *corev1.Pod
		want string
	}{
		"no address":                            {mirrortest.MemberWithCIDRs("10.8.0.0/16"), leaf(), ""},
		"inside the podCIDRs":                   {mirrortest.MemberWithCIDRs("10.8.0.0/16"), leaf("10.8.0.1"), ""},
		"outside the podCIDRs":                  {mirrortest.MemberWithCIDRs("10.8.0.0/16"), leaf("10.8.0.1", "10.96.0.1"), "10.96.0.1"},
		"a special address":                     {mirrortest.MemberWithCIDRs("0.0.0.0/0"), leaf("169.254.169.254"), "169.254.169.254"},
		"without podCIDRs, no address is shown": {mirrortest.Member, leaf("10.8.0.1"), ""},
		"an escape sequence":                    {mirrortest.MemberWithCIDRs("10.8.0.0/16"), leaf("\x1b[2J"), "[2J"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := HiddenPodIP(tc.leaf, tc.m); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
