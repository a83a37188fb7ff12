package manager

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"path/filepath"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/xylem-io/xylem/internal/fleet"
	"github.com/xylem-io/xylem/internal/nodeapi"
)

// addNodeAPI adds the node API, and returns its port, or 0 if it is disabled.
func (w *wiring) addNodeAPI(members *fleet.Fleet) (int32, error) {
	port, err := w.options.NodeAPIPort()
	if err != nil || port == 0 {
		return 0, err
	}
	certificate, err := w.nodeAPICertificate()
	if err != nil {
		return 0, err
	}
	authenticator, authorizer, run, err := nodeapi.NewDelegatedAuth(w.nodeAPIConfig)
	if err != nil {
		return 0, err
	}
	w.nodeAPI = nodeapi.New(nodeapi.Options{
		Address: w.options.NodeAPIAddress, HostID: w.host.id, Host: w.mgr.GetClient(), HostLive: w.live,
		MemberState: members.MemberState, IsLeader: w.isLeader, LeaderName: w.leaderPodName,
		Authenticator: authenticator, Authorizer: authorizer, RunAuthenticator: run, Certificate: certificate,
		Limits:      nodeapi.SessionLimits{Sessions: w.options.NodeAPISessions, MemberSessions: w.options.NodeAPIMemberSessions},
		IdleTimeout: w.options.NodeAPIIdle, Clock: clock.RealClock{}, Log: ctrl.Log.WithName("node-api"),
	})
	if err := w.mgr.Add(w.nodeAPI); err != nil {
		return 0, fmt.Errorf("add the node API: %w", err)
	}
	return port, nil
}

// nodeAPICertificate returns a function that returns the serving certificate of the node API.
func (w *wiring) nodeAPICertificate() (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	var addresses []net.IP
	if ip := net.ParseIP(w.options.NodeAPIHost); ip != nil {
		addresses = append(addresses, ip)
	}
	name, _, _ := strings.Cut(w.identity, "_")
	own := &nodeapi.SelfSignedCertificate{Name: name, Addresses: addresses, Clock: clock.RealClock{}}
	switch dir := w.options.NodeAPICertDir; {
	case dir != "":
		watcher, err := certwatcher.New(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
		if err != nil {
			return nil, fmt.Errorf("read the certificate in --node-api-cert-dir: %w", err)
		}
		if err := w.mgr.Add(watcher); err != nil {
			return nil, fmt.Errorf("watch the certificate in --node-api-cert-dir: %w", err)
		}
		return watcher.GetCertificate, nil
	case w.options.NodeAPIRequest:
		requested, err := nodeapi.NewRequestedCertificate(w.nodeAPIConfig, addresses, own)
		if err != nil {
			return nil, err
		}
		if err := w.mgr.Add(requested); err != nil {
			return nil, fmt.Errorf("request a certificate from the host: %w", err)
		}
		return requested.GetCertificate, nil
	}
	return own.GetCertificate, nil
}

// isLeader reports whether this replica is the leader.
func (w *wiring) isLeader() bool {
	select {
	case <-w.mgr.Elected():
		return true
	default:
		return false
	}
}

// leaderPodName returns the name of the leader's Pod.
func (w *wiring) leaderPodName(ctx context.Context) (string, error) {
	var lease coordinationv1.Lease
	if err := w.live.Get(ctx, client.ObjectKey{Namespace: w.options.Namespace, Name: LeaderElectionID}, &lease); err != nil {
		return "", fmt.Errorf("read the leader election Lease: %w", err)
	}
	name, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	return name, nil
}
