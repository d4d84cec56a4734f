import type { MutantsOfFile } from "./mutant.ts";

/** Model servers: who is asked, who waits, and who is left alone. */
export const replicaMutants: readonly MutantsOfFile[] = [
	{
		file: "upstream/replicas/breaker.ts",
		killers: ["upstream/breaker"],
		mutants: [
			{
				breaks: "a call from before a breaker's change of state counts behind it",
				before: "if (call.generation !== generation) return;\n\t\t\tif (outcome",
				after: "if (outcome",
			},
			{
				breaks: "what one account alone meets keeps everybody away",
				before: "all.size > 1 && (!healthy() ||",
				after: "(!healthy() ||",
			},
			{
				breaks: "failures of several keep everybody away while others are answered",
				before: "if (accounts.size > 1 && outcomes.othersAnswered(met)) return;",
				after: "",
			},
			{
				breaks: "failures of two keep everybody away from what calls itself well",
				before: "(!healthy() || all.size >= FAILING_ACCOUNTS_MAX)",
				after: "true",
			},
			{
				breaks: "who asks one server of two for what only the other can answer takes it from all",
				before: "if (proved.length > 0 && !isOfFew(proved)) {",
				after: "if (proved.length > 0) {",
			},
			{
				breaks: "who fails a trial on what another server answers has it rest for all",
				before: '(state === "half_open" || outcomes.othersAnswered(proved))',
				after: "outcomes.othersAnswered(proved)",
			},
			{
				breaks: "a server that nobody reaches is kept for those it answered before",
				before: "if (proved.some(({ judged }) => !judged)) return false;",
				after: "",
			},
			{
				breaks: "however many accounts fail, the next one is a trial",
				before: " || all.size >= FAILING_ACCOUNTS_MAX",
				after: "",
			},
			{
				breaks: "who fails a trial of others keeps those away whose rest is long over",
				before: "new Set(trial ? [accountId] : met.map((failure) => failure.accountId))",
				after: "new Set(met.map((failure) => failure.accountId))",
			},
			{
				breaks: "a server that fails for all who ask is shown as one that tries",
				before: 'state === "half_open" && isCooling() ? "open" : state',
				after: 'false ? "open" : state',
			},
			{
				breaks: "a breaker that cools lets any number of calls try",
				before: 'if (state === "half_open" && !rests(accountId)) triedUntilMs = clock.monotonicMs() + TRIAL_ALONE_MS;',
				after: "",
			},
			{
				breaks: "an answered trial says nothing for the server",
				before: "outcomes.answered(call.accountId);\n\t\t} else",
				after: "} else",
			},
			{
				breaks: "a trial that takes minutes is the only one all that time",
				before: "triedUntilMs = clock.monotonicMs() + TRIAL_ALONE_MS",
				after: "triedUntilMs = Number.POSITIVE_INFINITY",
			},
			{
				breaks: "a trial that failed cools no longer than before",
				before: "coolMs = Math.min(coolMs * 2, limits().breakerCoolMsMax);",
				after: "",
			},
			{
				breaks: "a breaker cools for longer and longer, without a most",
				before: "Math.min(coolMs * 2, limits().breakerCoolMsMax)",
				after: "coolMs * 2",
			},
			{
				breaks: "who was kept away alone stays so though the failures were his request's",
				before: "if (outcomes.failuresInRow().length < limits().breakerFailuresInRow) resting.delete(call.accountId);",
				after: "",
			},
		],
	},
	{
		file: "upstream/replicas/call-outcomes.ts",
		killers: ["upstream/breaker"],
		mutants: [
			{
				breaks: "an answer ends no row of failures",
				before: "if (inRow.length > 0) inRow = [];",
				after: "",
			},
			{
				breaks: "an answer to others speaks for a replica that calls itself ill",
				before: "if (!healthy()) return false;",
				after: "",
			},
			{
				breaks: "an answer to others speaks for a replica for ever",
				before: "atMs >= sinceMs && !failing",
				after: "!failing",
			},
			{
				breaks: "who fails and is answered now and then puts the others' answers out of mind",
				before: "const ANSWERED_ACCOUNTS_MAX = 8;",
				after: "const ANSWERED_ACCOUNTS_MAX = 1;",
			},
			{
				breaks: "a share of failures is taken of fewer calls than the window has",
				before: "if (window.length < WINDOW_CALLS) return [];",
				after: "",
			},
		],
	},
	{
		file: "upstream/replicas/pool.ts",
		killers: ["upstream/pool", "upstream/patient-calls"],
		mutants: [
			{
				breaks: "a line whose account is kept away from the server that has room keeps all others from it",
				before: "else if (isFirst && !patient.hasRoom(replicas)) return;",
				after: "else if (isFirst) return;",
			},
			{
				breaks: "a request that failed is not tried on what is doubted",
				before: " || lastResort(wanted) !== undefined",
				after: "",
				killers: ["upstream/replay"],
			},
			{
				breaks: "a line of a batch is tried on what is doubted",
				before: "isLine ? undefined : replicas.find",
				after: "replicas.find",
			},
			{
				breaks: "an account may hold all places",
				before: "if (hasItsShare(wanted.accountId)) return undefined;",
				after: "",
			},
			{
				breaks: "a full queue refuses the one who comes, however long another's line is",
				before: "const last = lines.displaced(wanted.accountId);",
				after: "const last = undefined as Waiter | undefined;",
			},
			{
				breaks: "the queue has no end",
				before: "if (lines.size() >= limits().queueLengthMax) {",
				after: "if (lines.size() < 0) {",
			},
			{
				breaks: "who waits for a place waits for ever",
				before: "clock.after(limits().queueWaitMs, () => refuse(overloaded())),",
				after: "() => {},",
			},
			{
				breaks: "a client that leaves the queue stays in it",
				before: 'wanted.signal.addEventListener("abort", onAbort, { once: true });',
				after: "",
			},
			{
				breaks: "a line of a batch is served before somebody who waits",
				before: "return lines.size() > 0 ? undefined : patient.choose(replicas, exclude, accountId);",
				after: "return patient.choose(replicas, exclude, accountId);",
			},
			{
				breaks: "nobody asks a line of a batch for its place",
				before: "if (!wanted.signal.aborted && !hasItsShare(wanted.accountId)) askForPlace(wanted);",
				after: "",
			},
			{
				breaks: "places of lines of batches are their account's",
				before: "if (line === undefined) count(accountId, 1);",
				after: "count(accountId, 1);",
			},
			{
				breaks: "an address that comes back while calls of it are under way takes no others",
				before: "for (const replica of leaving) if (next.includes(replica)) replica.takeBack();\n",
				after: "",
				killers: ["upstream/upstreams"],
			},
			{
				breaks: "who waits is not looked at when a server cools down by time alone",
				before: "if (lines.size() + patient.waiting.size + patient.watching.size > 0) lookAgain();",
				after: "",
			},
		],
	},
	{
		file: "upstream/replicas/waiting-lines.ts",
		killers: ["upstream/pool"],
		mutants: [
			{
				breaks: "places go by who came first, however many he has",
				before: "ranked.sort((a, b) => a.places - b.places || a.line.turn - b.line.turn);",
				after: "ranked.sort((a, b) => a.line.turn - b.line.turn);",
			},
			{
				breaks: "who had a place just now is first again",
				before: "if (line !== undefined) line.turn = turns++;",
				after: "",
			},
			{
				breaks: "the last of a line no longer than one's own is displaced",
				before: "<= (lines.get(accountId)?.waiters.size ?? 0) + 1",
				after: "<= 0",
			},
		],
	},
	{
		file: "upstream/replicas/replica-choice.ts",
		killers: ["upstream/pool"],
		mutants: [
			{
				breaks: "a conversation stays with its replica however busy that is",
				before: "return loadOf(preferred) <= leastLoad + AFFINITY_SLACK_SHARE ? preferred : least;",
				after: "return preferred;",
			},
			{
				breaks: "a conversation moves to whoever is less busy by anything",
				before: "leastLoad + AFFINITY_SLACK_SHARE ?",
				after: "leastLoad ?",
			},
			{
				breaks: "the busiest replica is asked",
				before: "if (load < leastLoad) {",
				after: "if (least === undefined || load > leastLoad) {",
			},
			{
				breaks: "a replica that the request failed at is asked again",
				before: "if (exclude.has(replica) || !replica.hasPlace(accountId)) continue;",
				after: "if (!replica.hasPlace(accountId)) continue;",
			},
		],
	},
	{
		file: "upstream/replicas/replica.ts",
		killers: ["upstream/pool", "upstream/breaker"],
		mutants: [
			{
				breaks: "a replica that comes back takes its full load at once",
				before: 'if (next === "up" && health === "down") recoveredAtMs = clock.monotonicMs();',
				after: "",
			},
			{
				breaks: "where nothing else is left, what says nothing is asked too",
				before: '(health !== "down" || saysSo)',
				after: "true",
			},
			{
				breaks: "an answer calls nobody up who said that he is down",
				before: 'if (health === "down" && saysSo) setHealth("up");',
				after: "",
			},
			{
				breaks: "a replica takes more calls than it has places",
				before: "!draining && allows(accountId) && inFlight < capacity(),",
				after: "!draining && allows(accountId),",
			},
			{
				breaks: "the first event of a trial closes no breaker",
				before: 'if (breaker.state() === "half_open") endWell(call);',
				after: "",
			},
			{
				breaks: "a server whose trial was a whole answer takes its full load at once",
				before: "noteAnswer();\n\t\t\t\tendWell(call);",
				after: 'noteAnswer();\n\t\t\t\tbreaker.end(call, "ok");',
			},
			{
				breaks: "a server that a few accounts failed at starts slowly for all others",
				before: 'if (wasOpen && breaker.state() === "closed")',
				after: 'if (breaker.state() === "closed")',
			},
		],
	},
	{
		file: "upstream/replicas/last-resort.ts",
		killers: ["upstream/pool"],
		mutants: [
			{
				breaks: "what just failed is asked again at once, where there is nothing else",
				before: "dueAtMs = clock.monotonicMs() + PAUSE_MS;",
				after: "dueAtMs = 0;",
			},
			{
				breaks: "where there is nothing else, it is asked by any number at once",
				before: "clock.monotonicMs() + ALONE_MS",
				after: "0",
			},
			{
				breaks: "who leaves again and again keeps all others from what there is nothing else beside",
				before: "Math.min(dueAtMs, clock.monotonicMs() + PAUSE_MS)",
				after: "clock.monotonicMs() + PAUSE_MS",
			},
			{
				breaks: "who was let through and left keeps others away for as long as one who takes his time",
				before: "dueAtMs = Math.min(dueAtMs, clock.monotonicMs() + PAUSE_MS);",
				after: "",
			},
		],
	},
	{
		file: "upstream/replicas/health.ts",
		killers: ["upstream/health"],
		mutants: [
			{
				breaks: "one answer that stays away takes a replica out",
				before: "const FAILURES_TO_BE_DOWN = 2;",
				after: "const FAILURES_TO_BE_DOWN = 1;",
			},
			{
				breaks: "a refused connection is a hiccup",
				before: 'const down = verdict === "refused" || watch.failuresInRow',
				after: "const down = watch.failuresInRow",
			},
			{
				breaks: "a server that wants a key for its health, or has none, is ill",
				before: "return response.status < 500 || response.status === 501",
				after: "return response.status < 400",
			},
			{
				breaks: "who answers requests is down all the same when he says so",
				before: ' || (verdict === "failing" && watch.isWrong)',
				after: "",
			},
			{
				breaks: "who once said wrongly that he is down is never believed again",
				before: 'if (verdict === "up" && !answered) watch.isWrong = false;',
				after: "",
			},
			{
				breaks: "who answers requests is asked for his health as well",
				before: 'answered ? "up" : await',
				after: "await",
			},
		],
	},
	{
		file: "upstream/replicas/output-estimator.ts",
		killers: ["upstream/output-estimator"],
		mutants: [
			{
				breaks: "one stream says what output is worth",
				before: "const STREAMS_KNOWN_MIN = 3;",
				after: "const STREAMS_KNOWN_MIN = 1;",
			},
			{
				breaks: "one server that lies once says what output is worth",
				before: "const tokens = isKnown() ? Math",
				after: "const tokens = amount < 0 ? Math",
			},
			{
				breaks: "more tokens than bytes are believed",
				before: "Math.min(told === events + 1 ? events : told, bytes)",
				after: "told === events + 1 ? events : told",
			},
		],
	},
];
