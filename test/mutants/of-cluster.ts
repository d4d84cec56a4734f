import type { MutantsOfFile } from "./mutant.ts";

/** Leases of instances, fences, the control log. */
export const clusterMutants: readonly MutantsOfFile[] = [
	{
		file: "cluster/gate.ts",
		killers: ["cluster/gate"],
		mutants: [
			{
				breaks: "the gate goes by the monotonic clock alone",
				before: "< forMs && clock.wallMs() - mark.wallMs < forMs",
				after: "< forMs",
			},
			{
				breaks: "the gate goes by the wall clock alone",
				before: "clock.monotonicMs() - mark.monotonicMs < forMs && ",
				after: "",
			},
			{
				breaks: "the gate's time counts from when it is extended, not from the mark",
				before: "mark = since;",
				after: "mark = { monotonicMs: clock.monotonicMs(), wallMs: clock.wallMs() };",
			},
			{ breaks: "a gate that was closed for good opens again", before: "if (final) return;", after: "" },
		],
	},
	{
		file: "cluster/heartbeat.ts",
		killers: ["cluster/heartbeat", "cluster/fence", 60],
		mutants: [
			{
				breaks: "the gate is extended from after the heartbeat's reply",
				before: "gate.extend(mark, ttlMs - options.marginMs);\n\t\t\treturn;",
				after: "gate.extend(gate.mark(), ttlMs - options.marginMs);\n\t\t\treturn;",
			},
			{
				breaks: "the gate is opened from after the reply to going live",
				before: "gate.extend(mark, ttlMs - options.marginMs);\n\t\t\t\tcancelTimer",
				after: "gate.extend(gate.mark(), ttlMs - options.marginMs);\n\t\t\t\tcancelTimer",
			},
			{
				breaks: "the gate is extended to the lease's very end: no margin",
				before: "gate.extend(mark, ttlMs - options.marginMs);\n\t\t\treturn;",
				after: "gate.extend(mark, ttlMs);\n\t\t\treturn;",
			},
			{
				breaks: "the gate stays open though the heartbeat showed entries that were not applied",
				before: "if (position.seq > applied) {",
				after: "if (position.seq > applied && round < 0) {",
			},
			{
				breaks: "a heartbeat that failed is repeated a second later only",
				before: "\t\t\t\t\trepeatSoon();\n",
				after: "",
			},
			{
				breaks: "an epoch that was fenced off goes on",
				before: "if (position === null) {",
				after: "if (position === null) return;\n\t\t\tif (position === null) {",
			},
			{
				breaks: "an epoch that another server does not know was merely fenced off",
				before: 'isElsewhere ? "another server" : "fenced off"',
				after: '"fenced off"',
			},
			{
				breaks: "an epoch goes on before another server",
				before: "if (position.server !== joinedAt.server) return end",
				after: "if (position.server === undefined) return end",
			},
			{
				breaks:
					"others hear that an epoch is over before what lay idle there is back, because the database is on another server",
				before: 'if (why === "fenced off") counted = false;',
				after: 'if (why !== "fenced off") tellOthers();\n\t\tcounted = false;',
			},
			{
				breaks: "others never hear that an epoch is over because the database is on another server",
				before: 'if (why === "fenced off") counted = false;',
				after: "counted = false;",
			},
			{
				breaks: "an epoch that was fenced off does not say that its process is there",
				before: "if (!counted) tellAgain();",
				after: "",
			},
			{
				breaks: "an instance is live though the log has newer entries",
				before: "if (seq !== applied) continue;",
				after: "",
			},
			{
				breaks: "the gate stays open at the end of an epoch",
				// biome-ignore lint/suspicious/noTemplateCurlyInString: it is the line of the source
				before: "gate.close(`${why}; joining again`);",
				after: "",
			},
			{
				breaks: "an instance that stops does not say so",
				before: "close();\n\t\ttellOthers();\n\t\tcounted = false;\n\t\ttellAgain();",
				after: "close();",
			},
			{
				breaks: "an instance that stops leaves its gate open",
				before: "gate.close(why);\n",
				after: "\n",
			},
			{
				breaks: "an entry counts as applied before it is",
				before: "deps.apply(entry);\n\t\t\tapplied = entry.seq;",
				after: "applied = entry.seq;\n\t\t\tclock.after(0, () => deps.apply(entry));",
			},
		],
	},
	{
		file: "cluster/fence.ts",
		killers: ["cluster/fence", 60],
		mutants: [
			{
				breaks: "what another server may have lost is said to be in force",
				before: "if (mark !== server.mark) throw",
				after: "if (mark === undefined) throw",
			},
			{
				breaks: "a fence adds nothing to a lease for clocks that run slower",
				before: "const untilOverMs = ttlMs + options.graceMs - silences",
				after: "const untilOverMs = ttlMs - silences",
			},
			{
				breaks: "a renewal does not begin the wait anew",
				before: "if (known?.beat === beat) return",
				after: "if (known) return",
			},
			{
				breaks: "whoever was to be fenced off counts as fenced off, unseen",
				before: "effective: pending.length === 0 &&",
				after: "effective: pending.length === over.length &&",
			},
			{
				breaks: "nobody waits on a server that the database has not lived on",
				before: "if (unquietMs === 0) return 0;",
				after: "if (unquietMs >= 0) return 0;",
			},
			{
				breaks: "a new server is waited for no longer than the lease",
				before: "const leftMs = unquietMs + options.graceMs -",
				after: "const leftMs = unquietMs -",
			},
			{
				breaks: "a look that failed counts as one that found nobody",
				before: "failures += 1;\n",
				after: "failures += 1;\n\t\t\tif (failures > 0) return { effective: true, pending: [], leftMs: 0 };\n",
			},
		],
	},
	{
		file: "cluster/witness.ts",
		killers: ["cluster/witness"],
		mutants: [
			{
				breaks: "a witness takes an instance for silent when its lease ends, without the grace",
				before: "<= ttlMs + options.graceMs) continue;",
				after: "<= ttlMs) continue;",
			},
			{
				breaks: "a witness calls a new server quiet at the end of a lease, without the grace",
				before: "> server.unquietMs + options.graceMs)",
				after: "> server.unquietMs)",
			},
		],
	},
	{
		file: "cluster/wait-everywhere.ts",
		killers: ["cluster/wait-everywhere"],
		mutants: [
			{
				breaks: "acts that take a right away wait without the grace",
				before: "graceMs: FENCE_GRACE_MS }",
				after: "graceMs: 0 }",
			},
		],
	},
	{
		file: "db/functions/cluster.sql",
		killers: ["cluster/fence", "cluster/heartbeat", "cluster/witness", "ledger/store-contract"],
		mutants: [
			{
				breaks: "an epoch has a number that its process had of another server",
				before: "greatest(max(x.epoch), p_after) + 1",
				after: "coalesce(max(x.epoch), 0) + 1",
			},
			{
				breaks: "an entry that no server has any more is waited for",
				before: "if not exists (select 1 from control_log l where l.seq = p_seq and",
				after: "if false and not exists (select 1 from control_log l where l.seq = p_seq and",
			},
			{
				breaks: "an entry is known by its number alone, which a server that took over gave to another one",
				before: "l.seq = p_seq and control_at(l.at) = p_at_micros)",
				after: "l.seq = p_seq)",
			},
			{
				breaks: "fencing off does not look whether the lease was renewed",
				before: "b.state <> all (p_from) or b.beat <> p_beat then",
				after: "b.state <> all (p_from) then",
			},
			{
				breaks: "fencing off does not wait for a renewal that is being committed",
				before: "  perform pg_advisory_xact_lock(hashtextextended('standing ' || p_id || ' ' || p_epoch, 0));\n",
				after: "",
			},
			{
				breaks: "any standing may follow any other",
				before: "b.state <> all (p_from) or ",
				after: "",
			},
			{
				breaks: "an instance goes live without holding the control log",
				before: "  perform pg_advisory_xact_lock_shared(hashtextextended('control log', 0));\n",
				after: "",
			},
			{
				breaks: "an instance that was fenced off renews its lease",
				before:
					"if instance_stand(p_id, p_epoch, null, array['live', 'silent'], 'live', p_ttl_ms, p_applied) is null then\n    return;",
				after:
					"if instance_stand(p_id, p_epoch, null, array['live', 'silent', 'dead'], 'live', p_ttl_ms, p_applied) is null then\n    return;",
			},
			{
				breaks: "an instance that was fenced off goes live",
				before: "array['joining', 'live', 'silent'], 'live', p_ttl_ms",
				after: "array['joining', 'live', 'silent', 'dead'], 'live', p_ttl_ms",
			},
			{
				breaks: "an epoch that has applied another log's entries renews its lease",
				before: "if p_applied > seq then",
				after: "if false then",
			},
			{
				breaks: "what an instance has applied is not written down",
				sqlSeed: 5,
				before: "greatest(b.applied_seq, p_applied)",
				after: "b.applied_seq",
			},
			{
				breaks: "entries get their numbers without the log's lock",
				before: "  perform pg_advisory_xact_lock(hashtextextended('control log', 0));\n",
				after: "",
			},
			{
				breaks: "two starts of one identity take their epochs without a lock",
				before: "  perform pg_advisory_xact_lock(hashtextextended('instance ' || p_id, 0));\n",
				after: "",
			},
			{
				breaks: "who was found silent is not fenced off at once",
				before: "array['silent'], 'dead', null, null) from (",
				after: "array['never'], 'dead', null, null) from (",
			},
			{
				breaks: "an instance that has applied all but the entry counts as up to date",
				sqlSeed: 8,
				before:
					"return query select i.id, i.epoch, i.beat, i.ttl_ms, i.lease_until from instance_now i\n    where i.state in ('live', 'silent') and i.applied_seq < p_seq;",
				after:
					"return query select i.id, i.epoch, i.beat, i.ttl_ms, i.lease_until from instance_now i\n    where i.state in ('live', 'silent') and i.applied_seq < p_seq - 1;",
			},
			{
				breaks: "every server is one that the database has lived on",
				before: "fresh := not exists (select 1 from server_seen s where s.mark = server_fresh.mark and s.quiet);",
				after: "fresh := false;",
			},
			{
				breaks: "on a new server nobody waits for those who were about to go live on the one before it",
				before: "from instance_now i where i.state <> 'left';",
				after: "from instance_now i where i.state = 'live';",
			},
		],
	},
];
