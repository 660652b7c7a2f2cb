//! Every interleaving of two proposers and three children, with answers that get lost, writes that arrive late, and children
//! that cannot be asked: the register never forks and never forgets.

use super::quorum::{Action, Event, Outcome, Proposer, Record, Rules, Voters};
use std::collections::HashSet;

const CHILDREN: usize = 3;

/// A value: what was put in, in order, and whose majorities it takes.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Value {
    log: Vec<u8>,
    sets: Vec<Vec<usize>>,
}

/// Puts a number in, once, if the value still has the length it had when the proposer asked; and may change the sets with it.
struct Put {
    number: u8,
    /// Which sets the value names from then on, if others.
    sets: Option<Vec<Vec<usize>>>,
    /// The sets to begin with.
    first: Vec<Vec<usize>>,
}

impl Rules<Value> for Put {
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
    seen: Vec<Record<Value>>,
    asked: Vec<Action<Value>>,
    /// How many of its changes are chosen, and attempts it has left.
    done: usize,
    attempts: usize,
    running: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct World {
    children: Vec<Record<Value>>,
    actors: Vec<Actor>,
    /// Writes given up by who asked for them, which may still arrive.
    late: Vec<(usize, Record<Value>, Record<Value>)>,
    faults: usize,
    /// The value chosen last.
    chosen: Vec<u8>,
}

struct Model {
    /// The changes of each actor, in order.
    plans: Vec<Vec<Put>>,
    attempts: usize,
    faults: usize,
}

impl Model {
    fn first(&self) -> World {
        let actor = |id: usize| Actor {
            proposer: Proposer::new(id as u64 + 1, CHILDREN),
            seen: vec![Record::default(); CHILDREN],
            asked: Vec::new(),
            done: 0,
            attempts: self.attempts,
            running: false,
        };
        World {
            children: vec![Record::default(); CHILDREN],
            actors: (0..self.plans.len()).map(actor).collect(),
            late: Vec::new(),
            faults: self.faults,
            chosen: Vec::new(),
        }
    }

    /// What a proposer wants. Reads are done at once: whether one is old when it is built upon, the write behind it tells, and that
    /// may come at any time.
    fn told(
        &self,
        world: &mut World,
        who: usize,
        told: (Vec<Action<Value>>, Option<Outcome<Value>>),
    ) {
        let put = &self.plans[who][world.actors[who].done];
        let (mut actions, mut outcome) = told;
        while let Some(action) = actions.pop() {
            match action {
                Action::Read(child) => {
                    let record = world.children[child].clone();
                    let actor = &mut world.actors[who];
                    actor.seen[child] = record.clone();
                    let event = Event::Read(child, record);
                    let (more, ended) = actor.proposer.event(event, put);
                    actions.extend(more);
                    outcome = outcome.or(ended);
                }
                write => world.actors[who].asked.push(write),
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
            let Some(put) = self.plans[who].get(actor.done) else {
                continue;
            };
            if !actor.running {
                if actor.attempts > 0 {
                    let mut world = world.clone();
                    world.actors[who].running = true;
                    let told = world.actors[who].proposer.start(put);
                    self.told(&mut world, who, told);
                    all.push(world);
                }
                continue;
            }
            for index in 0..actor.asked.len() {
                let mut base = world.clone();
                let action = base.actors[who].asked.remove(index);
                let mut answer = |mut world: World, event| {
                    let told = world.actors[who].proposer.event(event, put);
                    self.told(&mut world, who, told);
                    all.push(world);
                };
                // Reads are done when they are asked for.
                let Action::Write(child, record) = action else {
                    continue;
                };
                let seen = base.actors[who].seen[child].clone();
                let applies = base.children[child] == seen;
                // Faults happen to one of them, when it matters most.
                let accepts = record.accepted_at() != seen.accepted_at();
                let faulty = base.faults > 0 && who == 0 && accepts;
                if faulty {
                    // It arrives later, or never; the child may be away then.
                    for event in [Event::Unwritten(child), Event::Failed(child)] {
                        let mut lost = base.clone();
                        lost.faults -= 1;
                        lost.late.push((child, seen.clone(), record.clone()));
                        answer(lost, event);
                    }
                }
                if !applies {
                    answer(base, Event::Unwritten(child));
                    continue;
                }
                base.children[child] = record.clone();
                if faulty {
                    let mut unheard = base.clone();
                    unheard.faults -= 1;
                    answer(unheard, Event::Unwritten(child));
                }
                base.actors[who].seen[child] = record;
                answer(base, Event::Written(child));
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
    let all: usize = plans.iter().map(Vec::len).sum();
    let model = Model {
        plans,
        attempts,
        faults,
    };
    let (states, longest) = model.run();
    eprintln!("{states} states, {longest} changes chosen");
    assert_eq!(longest, all, "all changes can come through");
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
