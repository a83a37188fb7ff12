// Package proxy is a TLS reverse proxy in front of one API server. It understands the Kubernetes
// API, records every write that its clients make, and can inject a fault at each write: an error, a
// lost response, a broken connection, or the death of the client. It can also end watches, respond to
// them with 410 Expired, and respond to lists with an earlier state. Clients use HTTP/2 and bearer
// tokens, which the proxy forwards. It does not support client certificates.
//
// Writes are create, update, patch, delete and deletecollection. The proxy counts each once, when
// it passes the gate. It does not count dry runs, or reviews of tokens and access. Once a write has
// passed the gate, the proxy completes it even if the client disconnects, so that the log is
// correct.
//
// A kill happens at the same moment for all proxies that share a Log. The gate is closed from the
// plan's decision until OnKill has returned. Then all connections are reset. Requests that had not
// passed the gate are dropped and not recorded.
//
// A black hole freezes the TCP connection with everything on it: the response, other requests and
// HTTP/2 pings. Disarm resets the connection, and the proxy never forwards the write at which the
// black hole began. If SetMode makes the whole proxy a black hole, traffic resumes afterwards where
// it stopped, as with the proxies of test/controlplane.
//
// The API allows lists with an earlier state: resource version 0 means any version.
package proxy
