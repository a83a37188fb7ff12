package mirror

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// One such address in an EndpointSlice has the host's API server reject all of it,
// with the addresses of other members; others lead to what is near a client (I7, I8).
func TestSpecialAddressesAreNotShown(t *testing.T) {
	m := member
	m.PodCIDRs = AllPodCIDRs
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
			got := RootPodStatus(rootPod(corev1.PodSpec{}), leaf, m)
			if got.PodIP != want || got.HostIP != want {
				t.Errorf("podIP %q, hostIP %q, want %q", got.PodIP, got.HostIP, want)
			}
			if shown := len(got.PodIPs) == 1 && len(got.HostIPs) == 1; shown != (want != "") {
				t.Errorf("podIPs %v, hostIPs %v", got.PodIPs, got.HostIPs)
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
		m    Member
		leaf *corev1.Pod
		want string
	}{
		"no address":              {memberWithCIDRs("10.8.0.0/16"), leaf(), ""},
		"inside":                  {memberWithCIDRs("10.8.0.0/16"), leaf("10.8.0.1"), ""},
		"outside":                 {memberWithCIDRs("10.8.0.0/16"), leaf("10.8.0.1", "10.96.0.1"), "10.96.0.1"},
		"special":                 {memberWithCIDRs("0.0.0.0/0"), leaf("169.254.169.254"), "169.254.169.254"},
		"none is shown, as asked": {member, leaf("10.8.0.1"), ""},
		"with an escape":          {memberWithCIDRs("10.8.0.0/16"), leaf("\x1b[2J"), "[2J"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := HiddenPodIP(tc.leaf, tc.m); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
