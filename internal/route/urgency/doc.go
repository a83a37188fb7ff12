// Package urgency delays the events that are not urgent, so that many events cause one reconcile.
//
// Each of a controller's sources declares which of its events are urgent (Unhurried). Queue delays
// the other events by 250 ms, and the next reconcile of the same request drops them, because the
// cache contains an object's new state before its event is handled. So the twenty writes that bind
// a claim cause few reconciles. After a start, when all volumes are delayed, Queue adds them to the controller's
// queue only while that is short. No event is lost. After a start, workers begin once the requests
// for all existing objects have been added or delayed.
package urgency
