// Package updater decides what to do with a running pod now: resize it in
// place, wait, leave it, or take something back, and why.
//
// Plan is the one decision: a pure function of a pod, its target, its policy
// and its place. Its rules are an ordered list (rules.go), one function each.
// Observe is the state of a resize that was sent. What must survive a restart
// of the controller is a Record in the pod's annotation plimsoll.dev/resize;
// Plan reads it there, and says in Decision.Record what it is to be next.
//
// Who carries decisions out does this for one pod, one thing at a time:
//
//  1. Plan.
//  2. Write Decision.Record to the annotation, where there is one.
//  3. Send the first of Decision.Steps, with Step.Patch. The next step comes
//     with a later decision, once the first has taken effect.
//  4. Where the API server refuses, write what Refused gives.
//  5. Plan again when the pod, its target or its place changes, and at
//     Decision.Until.
//
// The package is pure: values in, values out.
package updater
