// Package reflection decides which classes of members are published in the host under their
// own names. Book has what the members have, as last seen in a synced cache. A View
// compares that with registrations and host classes, and decides for each class who offers
// it and what the host's class should be. It writes nothing and waits for nothing: the
// controller reflected_class acts on it, and cluster_registration reports what is not
// published.
//
// For a member that was not connected since the manager started, the host's own class
// tells: its labels offered-by.xylem.io/<registration>, with the member's ID among its
// topologies. So a member that is away keeps its offers, and no list that was never read
// removes one. What a member offers is noted at most every two seconds, however often it
// changes (I7).
//
//   - The oldest registration that offers a name decides on policy and expansion; one that
//     differs is a conflict.
//   - A reflected class has no parameters, so it maps to the class of the same name. If a
//     rule of the registration (an exact rule, or the prefix) maps the name to another
//     class, that member does not offer it, and the registration reports that.
//   - A member that has the class and does not offer it gets no Pods of it: what a
//     registration does not select is not used.
//   - If there are more classes than the maximum, those that are offered already come
//     first, by the manager's memory or, after a start, by the host's classes; then by
//     name. A new class displaces no other.
//   - A class that a connected member no longer has is offered for five more seconds. So
//     one that is replaced (`kubectl replace --force`) is not deleted, and one that comes
//     and goes costs at most a write each time. The scheduler does not choose that member
//     meanwhile, since its CSIStorageCapacity is deleted at once.
package reflection
