//! Every interleaving of two proposers and three children, with answers that get lost, writes that arrive late, and
//! children that cannot be asked: the register never forks and never forgets.

use super::caspaxos::{AcceptorReply, AcceptorState, Action, Outcome, Proposal, Proposer, Voters};
use std::collections::HashSet;

const CHILDREN: usize = 3;

/// A value: what was put in, in order, and whose majorities it takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Value {
    log: Vec<u8>,
    sets: Vec<Vec<usize>>,
}

/// Puts a number in, once, if the value still has the length it had when the proposer asked; and may change the sets
/// with it.
struct Put {
    number: u8,
    /// Which sets the value names from then on, if others.
    sets: Option<Vec<Vec<usize>>>,
    /// The sets to begin with.
    first: Vec<Vec<usize>>,
}

impl Proposal<Value> for Put {
    fn voters(&self, value: Option<&Value>) -> Vec<Voters> {
        let sets = value.map_or(&self.first, |value| &value.sets);
        let voters = |set: &Vec<usize>| set.iter().map(|&child| Some(child)).collect();
        sets.iter().map(voters).collect()
    }

    fn change(&self, value: Option<&Value>) -> Option<Value> {
        let mut value = value.cloned().unwrap_or(Value {
            log: Vec::new(),
            sets: self.first.clone(),
        });
        if value.log.contains(&self.number) {
            return None;
        }
        value.log.push(self.number);
        if let Some(sets) = &self.sets {
            value.sets.clone_from(sets);
        }
        Some(value)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Actor {
    proposer: Proposer<Value>,
    /// What it has read or written last, by child: what its writes are compared with.
    seen: Vec<AcceptorState<Value>>,
    asked: Vec<Action<Value>>,
    /// How many of its changes are chosen, and attempts it has left.
    done: usize,
    attempts: usize,
    running: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    children: Vec<AcceptorState<Value>>,
    actors: Vec<Actor>,
    /// Writes given up by who asked for them, which may still arrive.
    late: Vec<(usize, AcceptorState<Value>, AcceptorState<Value>)>,
    faults: usize,
    /// The value chosen last.
    chosen: Vec<u8>,
}

struct Model {
    /// The changes of each actor, in order.
    plans: Vec<Vec<Put>>,
    attempts: usize,
    faults: usize,
    /// The first actor, once a change of its own is chosen: its reads are answered at any time, it stops waiting at any
    /// time, and after an attempt that failed it wants something else. Faults happen to it only then.
    impatient: bool,
}

impl Model {
    /// What an actor wants now.
    fn put(&self, actor: &Actor, who: usize) -> Option<Put> {
        let put = self.plans[who].get(actor.done)?;
        let failed = u8::try_from(self.attempts - actor.attempts).expect("few");
        Some(Put {
            number: put.number + if self.impatient { 10 * failed } else { 0 },
            sets: put.sets.clone(),
            first: put.first.clone(),
        })
    }

    fn is_impatient(&self, actor: &Actor, who: usize) -> bool {
        self.impatient && who == 0 && actor.done > 0
    }

    fn first(&self) -> World {
        let actor = |id: usize| Actor {
            proposer: Proposer::new(id as u64 + 1, CHILDREN),
            seen: vec![AcceptorState::default(); CHILDREN],
            asked: Vec::new(),
            done: 0,
            attempts: self.attempts,
            running: false,
        };
        World {
            children: vec![AcceptorState::default(); CHILDREN],
            actors: (0..self.plans.len()).map(actor).collect(),
            late: Vec::new(),
            faults: self.faults,
            chosen: Vec::new(),
        }
    }

    /// What a proposer wants. Reads are done at once, but for those of an impatient one: whether one is old when it is
    /// built upon, the write behind it tells, and that may come at any time.
    fn told(
        &self,
        world: &mut World,
        who: usize,
        told: (Vec<Action<Value>>, Option<Outcome<Value>>),
    ) {
        let put = &self.put(&world.actors[who], who).expect("it wants one");
        let late = self.is_impatient(&world.actors[who], who);
        let (mut actions, mut outcome) = told;
        while let Some(action) = actions.pop() {
            match action {
                Action::Read(child) if !late => {
                    let record = world.children[child].clone();
                    let actor = &mut world.actors[who];
                    actor.seen[child] = record.clone();
                    let event = AcceptorReply::Read(child, record);
                    let (more, ended) = actor.proposer.event(event, put);
                    actions.extend(more);
                    outcome = outcome.or(ended);
                }
                later => world.actors[who].asked.push(later),
            }
        }
        let actor = &mut world.actors[who];
        let Some(outcome) = outcome else { return };
        actor.running = false;
        if let Outcome::Chosen(value) = outcome {
            let value = value.expect("something was put in");
            let count = value
                .log
                .iter()
                .filter(|&&other| other == put.number)
                .count();
            assert_eq!(count, 1, "what was put in is there, once: {value:?}");
            assert!(
                value.log.starts_with(&world.chosen) || world.chosen.starts_with(&value.log),
                "two values were chosen: {:?} and {value:?}",
                world.chosen
            );
            if value.log.len() > world.chosen.len() {
                world.chosen = value.log;
            }
            actor.done += 1;
        } else {
            actor.attempts -= 1;
        }
    }

    fn next(&self, world: &World) -> Vec<World> {
        let mut all = Vec::new();
        for who in 0..world.actors.len() {
            let actor = &world.actors[who];
            let Some(put) = &self.put(actor, who) else {
                continue;
            };
            let impatient = self.is_impatient(actor, who);
            if !actor.running {
                if actor.attempts > 0 {
                    let mut world = world.clone();
                    world.actors[who].running = true;
                    let told = world.actors[who].proposer.start(put);
                    self.told(&mut world, who, told);
                    all.push(world);
                }
                if !impatient {
                    continue;
                }
            } else if impatient {
                let mut world = world.clone();
                let told = world.actors[who].proposer.give_up(put);
                self.told(&mut world, who, told);
                all.push(world);
            }
            // What comes before does not matter there.
            let in_order = self.impatient && who == 0 && !impatient;
            let ways = actor.asked.len().min(if in_order { 1 } else { usize::MAX });
            for index in 0..ways {
                let mut base = world.clone();
                let action = base.actors[who].asked.remove(index);
                let mut answer = |mut world: World, event| {
                    let told = world.actors[who].proposer.event(event, put);
                    self.told(&mut world, who, told);
                    all.push(world);
                };
                let (child, record) = match action {
                    Action::Write(child, record) => (child, record),
                    Action::Read(child) => {
                        let record = base.children[child].clone();
                        base.actors[who].seen[child] = record.clone();
                        answer(base, AcceptorReply::Read(child, record));
                        continue;
                    }
                };
                let seen = base.actors[who].seen[child].clone();
                let applies = base.children[child] == seen;
                // Faults happen to one of them, when it matters most.
                let accepts = record.accepted_at() != seen.accepted_at();
                let faulty = base.faults > 0 && who == 0 && accepts && impatient == self.impatient;
                if faulty {
                    // It arrives later, or never; the child may be away then.
                    for event in [
                        AcceptorReply::Unwritten(child),
                        AcceptorReply::Failed(child),
                    ] {
                        let mut lost = base.clone();
                        lost.faults -= 1;
                        if !impatient {
                            lost.late.push((child, seen.clone(), record.clone()));
                        }
                        answer(lost, event);
                    }
                }
                if !applies {
                    answer(base, AcceptorReply::Unwritten(child));
                    continue;
                }
                base.children[child] = record.clone();
                if faulty {
                    let mut unheard = base.clone();
                    unheard.faults -= 1;
                    answer(unheard, AcceptorReply::Unwritten(child));
                }
                base.actors[who].seen[child] = record;
                answer(base, AcceptorReply::Written(child));
            }
        }
        for index in 0..world.late.len() {
            let mut world = world.clone();
            let (child, expected, record) = world.late.remove(index);
            if world.children[child] == expected {
                world.children[child] = record;
            }
            all.push(world);
        }
        all
    }

    /// Visits every state; tells how many there are, and the longest value chosen.
    fn run(&self) -> (usize, usize) {
        let first = self.first();
        let mut seen = HashSet::from([hash_of(&first)]);
        let mut open = vec![first];
        let mut longest = 0;
        while let Some(world) = open.pop() {
            longest = longest.max(world.chosen.len());
            for (index, child) in world.children.iter().enumerate() {
                for other in &world.children[..index] {
                    assert!(
                        child.accepted_at() != other.accepted_at()
                            || child.accepted == other.accepted,
                        "one ballot has two values: {child:?} and {other:?}"
                    );
                }
            }
            for next in self.next(&world) {
                if seen.insert(hash_of(&next)) {
                    open.push(next);
                }
            }
        }
        (seen.len(), longest)
    }
}

/// 64 bits of a state: among millions of states two rarely share them, and then one is merely not visited.
fn hash_of(world: &World) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    world.hash(&mut hasher);
    hasher.finish()
}

fn put(number: u8) -> Put {
    Put {
        number,
        sets: None,
        first: vec![vec![0, 1, 2]],
    }
}

/// Bounds of time, and more in a run that is asked for by name.
fn check(plans: Vec<Vec<Put>>, attempts: usize, faults: usize) {
    check_with(plans, attempts, faults, false);
}

fn check_with(plans: Vec<Vec<Put>>, attempts: usize, faults: usize, impatient: bool) {
    let all: usize = plans.iter().map(Vec::len).sum();
    let model = Model {
        plans,
        attempts,
        faults,
        impatient,
    };
    let (states, longest) = model.run();
    eprintln!("{states} states, {longest} changes chosen");
    // One that was given up may have come through all the same.
    assert!(
        longest == all || impatient && longest > all,
        "all changes can come through"
    );
    assert!(
        states > 1_000,
        "the model has become trivial: {states} states"
    );
}

#[test]
fn two_proposers_never_fork_the_register() {
    check(vec![vec![put(1)], vec![put(2)]], 1, 1);
}

#[test]
fn a_proposer_that_goes_on_is_stopped_by_another() {
    check(vec![vec![put(1), put(3)], vec![put(2)]], 1, 0);
}

#[test]
fn a_ballot_is_not_used_again_after_an_attempt_that_failed() {
    check_with(vec![vec![put(1), put(3)]], 2, 2, true);
}

#[test]
fn voters_change_in_two_steps_beside_another_proposer() {
    let old = vec![vec![0, 1]];
    let of = |number, sets: Option<&[&[usize]]>| Put {
        number,
        sets: sets.map(|sets| sets.iter().map(|set| set.to_vec()).collect()),
        first: old.clone(),
    };
    let moves = vec![of(1, Some(&[&[0, 1], &[1, 2]])), of(3, Some(&[&[1, 2]]))];
    check(vec![moves, vec![of(2, None)]], 1, 0);
}
