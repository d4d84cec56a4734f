import { leaseKey } from "./model-store.ts";
import { createSimProcess, type SimProcess } from "./process.ts";
import { GRACE_MS } from "./terms.ts";
import { addHost, type Host, type RequestRecord, type World } from "./world.ts";

type CrashKind = "kill" | "power" | "disk";

export type Faults = ReturnType<typeof createFaults>;

const RESTART_MS_MAX = 8_000;

/** Causes faults of machines, processes and the database. Also contains the supervisor that restarts processes. */
export function createFaults(world: World) {
	const { random, timeline, database } = world;
	let processes = 0;
	let isFailingOver = false;

	function startProcess(host: Host): void {
		if (host.lost) return;
		const process: SimProcess = createSimProcess(world, host, `${host.id}.${++processes}`, (dying) => crash(dying));
		host.process = process;
		world.lastFaultMs = timeline.nowMs();
		const attempt = () => {
			process.start().then(
				() => {
					world.lastFaultMs = timeline.nowMs();
				},
				() => {
					if (!process.dead) process.clock.after(500, attempt);
				},
			);
		};
		attempt();
	}

	function restartLater(host: Host, delayMs: number): void {
		timeline.after(delayMs, `${host.id}: start`, () => {
			if (!host.process) startProcess(host);
		});
	}

	function crash(process: SimProcess, kind: CrashKind = "kill"): void {
		if (process.dead) return;
		const { host } = process;
		crashQuietly(process);
		if (host.process === process) host.process = undefined;
		if (kind === "power") losePower(host);
		if (kind === "kill" && random.chance(0.15)) damage(host);
		if (kind === "disk") loseDisk(host);
		else restartLater(host, random.fraction() * RESTART_MS_MAX);
	}

	function recordsOf(host: Host): RequestRecord[] {
		return [...world.requests.values()].filter((record) => record.host === host);
	}

	/** Lets checks ignore usage of this host that is neither in its readable journal nor in the database. */
	function excuse(host: Host, mayForget: (record: RequestRecord) => boolean): void {
		const { settled, admitted } = host.disk.readable();
		for (const record of recordsOf(host)) {
			const row = world.model.usage.get(record.id);
			// The settlement of a request that was attested as lost may still arrive, unless this disk has lost it too.
			if (row && !(row.card === "" && row.charged === 0)) continue;
			const forgotten = record.settled || record.settleAppended ? !settled.has(record.id) : !admitted.has(record.id);
			// Excuses a running request too, because its progress records may be lost.
			if ((forgotten || !record.settleAppended) && mayForget(record)) record.excused = true;
		}
	}

	function losePower(host: Host): void {
		for (const other of [...host.others]) crashQuietly(other);
		host.disk.losePower(random);
		world.mayWriteOff = true;
		excuse(host, (record) => world.mode !== "host" || !record.acknowledged);
	}

	function damage(host: Host): void {
		world.count("fault: damaged journal");
		host.disk.damage(random);
		world.mayWriteOff = true;
		excuse(host, () => true);
	}

	function loseDisk(host: Host): void {
		for (const other of [...host.others]) crashQuietly(other);
		host.disk.wipe();
		host.lost = true;
		excuse(host, (record) => world.mode !== "remote" || !record.acknowledged);
		timeline.after(random.fraction() * 20_000, `${host.id}: attest`, () => attest(host));
	}

	function crashQuietly(process: SimProcess): void {
		const present = process.instanceLease?.present();
		for (const ledger of present ? [present, ...process.ledgers] : process.ledgers) {
			for (const { budget, held } of ledger.slices())
				world.heldAtDeath.set(leaseKey(budget, process.host.id, ledger.epoch), held);
		}
		process.dead = true;
		// No process sends these settlements again, because the one that would has died.
		for (const record of recordsOf(process.host))
			if (record.forgotten && !world.model.usage.has(record.id)) record.excused = true;
		process.host.disk.releaseAll(process);
		process.host.others.delete(process);
	}

	/** Does what `tollgate instance recover --journal-lost` does: watches an epoch that may be running for one lease. */
	function attest(host: Host, seen = new Map<number, { beat: number; sinceMs: number }>()): void {
		const again = () => timeline.after(500, `${host.id}: attest again`, () => attest(host, seen));
		if (!database.up) return void again();
		const unfinished = () =>
			[...world.model.instances.values()].filter(({ id, state }) => id === host.id && state !== "left");
		const epochs = unfinished();
		for (const { epoch, beat, state, ttlMs } of epochs) {
			if (state !== "live" && state !== "joining") continue;
			const known = seen.get(epoch);
			if (known?.beat !== beat) seen.set(epoch, { beat, sinceMs: timeline.nowMs() });
			else if (timeline.nowMs() - known.sinceMs > ttlMs + GRACE_MS) database.fenceOff(host.id, epoch, beat);
		}
		if (epochs.some(({ state }) => state === "live" || state === "joining")) return void again();
		for (const { epoch } of epochs) database.closeLost(host.id, epoch);
		if (unfinished().length > 0) return void again();
		world.count("attested");
		if (!host.lost) return;
		host.lost = false;
		restartLater(host, random.fraction() * 2_000);
	}

	function pause(process: SimProcess): void {
		world.onDelicate("cut off");
		const forMs = random.chance(0.4) ? random.fraction() * 500 : random.fraction() * 15_000;
		// If pauses overlap, the later end decides when the process's timers continue.
		process.pausedUntilMs = Math.max(process.pausedUntilMs, timeline.nowMs() + forMs);
		timeline.after(forMs, `${process.name}: awake`, () => {
			world.lastFaultMs = timeline.nowMs();
		});
		const { host } = process;
		if (forMs < 6_000 || !random.chance(0.4)) return;
		// The supervisor starts another process next to a stopped one, which ends when it continues.
		world.count("fault: replaced while stopped");
		host.others.add(process);
		host.process = undefined;
		restartLater(host, 1_000);
		timeline.after(forMs + random.fraction() * 3_000, `${process.name}: ended`, () => {
			if (process.dead) return;
			crashQuietly(process);
			// The journal waits for the next process of this host.
			if (host.process) crash(host.process);
			else restartLater(host, 100);
		});
	}

	function partition(process: SimProcess): void {
		world.onDelicate("cut off");
		const which = random.pick(["both", "requests", "replies"]);
		if (which !== "replies") process.link.requests = false;
		if (which !== "requests") process.link.replies = false;
		// In worlds with few other faults, a pause is longer than a lease.
		const leastMs = world.lonely ? 6_000 : 0;
		timeline.after(leastMs + random.fraction() * (12_000 - leastMs), `${process.name}: connected`, () => {
			process.link.requests = true;
			process.link.replies = true;
			world.lastFaultMs = timeline.nowMs();
			process.hear();
			process.hearRecalls();
		});
	}

	function outage(): void {
		if (!database.up) return;
		database.crash();
		timeline.after(random.fraction() * 9_000, "server: up", () => {
			if (!isFailingOver || world.failovers > 0) serverUp();
		});
	}

	function serverUp(): void {
		if (database.up) return;
		database.up = true;
		world.lastFaultMs = timeline.nowMs();
		for (const listener of [...world.listeners, ...world.recallListeners]) listener();
	}

	function failOver(): void {
		const { standby } = database;
		if (!standby || world.failovers > 0 || isFailingOver) return;
		isFailingOver = true;
		standby.copy();
		timeline.after(1_000 + random.fraction() * 7_000, "server: lost", () => {
			if (database.up) database.crash();
			timeline.after(random.fraction() * 4_000, "server: promoted", () => standby.promote?.(serverUp));
		});
	}

	/** Restores a snapshot on the current server. */
	function goBack(): void {
		const { standby } = database;
		if (!standby || world.failovers > 0 || isFailingOver || !database.up) return;
		isFailingOver = true;
		standby.copy();
		world.copiedMs = timeline.nowMs();
		timeline.after(4_000 + random.fraction() * 6_000, "server: restored", () => {
			if (database.up) database.crash();
			timeline.after(random.fraction() * 4_000, "server: back", () => standby.goBack(serverUp));
		});
	}

	function fillDisk(host: Host): void {
		host.disk.room = random.int(0, 2_000);
		host.fullUntilMs = timeline.nowMs();
		timeline.after(random.fraction() * 8_000, `${host.id}: room`, () => {
			host.disk.room = Number.POSITIVE_INFINITY;
			host.fullUntilMs = timeline.nowMs();
		});
	}

	function stopInOrder(process: SimProcess): void {
		const { host, instanceLease } = process;
		if (!instanceLease) return;
		process.leaving = true;
		host.process = undefined;
		host.others.add(process);
		void process.keyLimits.stop();
		void instanceLease.stop(random.int(1_000, 20_000)).then(() => {
			if (!process.dead) crashQuietly(process);
			restartLater(host, random.fraction() * 1_000);
		});
	}

	/** Sets the database's clock forward, as NTP or a failover may do. */
	function stepServerClock(): void {
		world.serverAheadMs += random.pick([-20_000, 8_000, 40_000, 3_600_000]);
	}

	function attestWrongly(host: Host): void {
		if (world.mode === "remote" || host.lost || !random.chance(0.3)) return;
		world.mayWriteOff = true;
		attest(host);
	}

	function strike(): void {
		const host = random.pick(world.hosts);
		const { process } = host;
		const strikes: [string, number, () => void][] = [
			["pause", 5, () => process && pause(process)],
			["partition", world.lonely ? 12 : 5, () => process && partition(process)],
			["outage", 2, outage],
			["server clock step", 3, stepServerClock],
			["kill", 5, () => process && crash(process)],
			["power", 2, () => process && crash(process, "power")],
			["disk lost", 1, () => process && crash(process, "disk")],
			["disk full", 2, () => fillDisk(host)],
			["stop", 2, () => process && stopInOrder(process)],
			["clock jump", 1, () => process && jump(process)],
			["join", 1, () => world.hosts.length < 4 && startProcess(addHost(world))],
			["wrong attestation", 1, () => attestWrongly(host)],
		];
		if (world.lonely) strikes.splice(6);
		if (world.goesBack) strikes.push(["went back", 8, goBack]);
		else if (database.standby?.promote) strikes.push(["failover", 4, failOver]);
		let at = random.int(
			1,
			strikes.reduce((sum, [, weight]) => sum + weight, 0),
		);
		for (const [name, weight, run] of strikes) {
			at -= weight;
			if (at > 0) continue;
			world.fault(`${name} ${process?.name ?? host.id}`.replace(/\d+\.\d+$|\d+$/, ""));
			run();
			return;
		}
	}

	function jump(process: SimProcess): void {
		process.clock.wallOffsetMs += random.int(-3_600_000, 3_600_000);
	}

	/** Ends all faults: restores connections and restarts processes. */
	function heal(): void {
		world.stormy = false;
		world.lastFaultMs = timeline.nowMs();
		if (!database.up) serverUp();
		for (const host of world.hosts) {
			host.disk.room = Number.POSITIVE_INFINITY;
			for (const process of [host.process, ...host.others]) {
				if (!process) continue;
				process.link.requests = true;
				process.link.replies = true;
				process.hear();
				process.hearRecalls();
			}
		}
	}

	return { strike, startProcess, crash, attest, heal };
}
