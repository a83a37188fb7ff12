// Package proxy is a TLS reverse proxy in front of one API server that knows
// what it forwards. It records every write of its clients, and at each of them
// it can do what networks, API servers and machines do on bad days; it also ends
// watches, calls their resource versions too old, and answers lists out of the
// past. Clients speak HTTP/2 with it and pass it their bearer tokens, which it
// forwards as they are; client certificates do not get through.
//
// What a write is: create, update, patch, delete and deletecollection, each once,
// as it passes the gate. Reviews of access and tokens change nothing and are not
// counted, dry runs neither. A write that was let pass is carried out to its end
// even if the client goes away meanwhile, so that what the log has was done.
//
// A kill is one point in time for all proxies that share a Log: the gate is closed
// from when the plan says so until OnKill has returned, all connections are reset
// then, and what came over them and had not passed the gate is dropped,
// unrecorded.
//
// A black hole freezes the TCP connection: the answer, the answers of other
// requests, HTTP/2 pings, everything. When it is healed (Disarm) such a
// connection is reset, and the write that began it is never forwarded. The black
// hole that SetMode makes of the whole proxy continues where it stopped, as that of
// test/controlplane.
//
// Lists of the past are such as the API allows: resource version 0 means any.
package proxy
