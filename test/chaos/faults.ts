import type { Program } from "../cli/run-cli.ts";
import type { Random } from "../support/random.ts";
import { type Fleet, type FleetMember, LEASE_TTL_MS } from "./fleet.ts";
import type { OwnPostgres } from "./own-postgres.ts";
import type { Touched, TouchKind } from "./touched.ts";

/** A fault. `run` resolves when the fault is repaired. */
export interface Fault {
	readonly name: string;
	run(): Promise<void>;
}

const short = (random: Random) => random.between(300, LEASE_TTL_MS * 0.6);
const long = (random: Random) => random.between(LEASE_TTL_MS * 1.3, LEASE_TTL_MS * 1.8);

/** Faults of one instance or its connections. After each fault, the instance runs and reaches the database. */
export function instanceFaults(fleet: Fleet, random: Random, touched: Touched): Fault[] {
	const on = (kind: TouchKind, name: string, work: (member: FleetMember) => Promise<void>): Fault => ({
		name,
		run() {
			const member = random.pick(fleet.members);
			return touched.during(kind, member.index, () => work(member));
		},
	});
	const paused = async (member: FleetMember, ms: number) => {
		member.process()?.kill("SIGSTOP");
		await Bun.sleep(ms);
		member.process()?.kill("SIGCONT");
	};
	const frozen = async (member: FleetMember, ms: number) => {
		member.proxy.freeze();
		await Bun.sleep(ms);
		member.proxy.thaw(random.fraction() < 0.5);
	};
	return [
		on("away", "kill -9 of an instance, restarted at once", async (member) => {
			await member.crash();
			await member.start();
		}),
		on("away", "kill -9 of an instance, restarted later", async (member) => {
			await member.crash();
			await Bun.sleep(random.between(500, LEASE_TTL_MS * 1.5));
			await member.start();
		}),
		on("cut off", "SIGSTOP of an instance, shorter than its lease", (member) => paused(member, short(random))),
		on("cut off", "SIGSTOP of an instance, longer than its lease", (member) => paused(member, long(random))),
		on("away", "SIGSTOP, then kill -9 of an instance", async (member) => {
			member.process()?.kill("SIGSTOP");
			await Bun.sleep(short(random));
			await member.crash();
			await member.start();
		}),
		on("cut off", "an instance's connections to Postgres go silent for good", async (member) => {
			member.proxy.freezeExisting();
			await Bun.sleep(short(random));
		}),
		on("cut off", "an instance's network to Postgres is silent, shorter than its lease", (member) =>
			frozen(member, short(random)),
		),
		on("cut off", "an instance's network to Postgres is silent, longer than its lease", (member) =>
			frozen(member, long(random)),
		),
		on("cut off", "an instance's connections to Postgres are cut", async (member) => {
			member.proxy.cut();
			await Bun.sleep(short(random));
			member.proxy.restore();
		}),
		on("away", "an instance is stopped and started", async (member) => {
			await member.stop();
			await member.start();
		}),
	];
}

/** Upgrades and rollbacks of one instance, orderly or not. Afterwards the instance runs the other version. */
export function versionFaults(
	fleet: Fleet,
	random: Random,
	touched: Touched,
	versions: readonly [Program, Program],
): Fault[] {
	const swapped = (end: (member: FleetMember) => Promise<unknown>) => {
		const member = random.pick(fleet.members);
		return touched.during("away", member.index, async () => {
			await end(member);
			member.become(member.program === versions[0] ? versions[1] : versions[0]);
			await member.start();
		});
	};
	return [
		{ name: "an instance is stopped and started as the other version", run: () => swapped((member) => member.stop()) },
		{ name: "kill -9 of an instance, started as the other version", run: () => swapped((member) => member.crash()) },
	];
}

/** Faults of the database server. After each fault, the server runs. */
export function databaseFaults(postgres: OwnPostgres, random: Random, touched: Touched): Fault[] {
	const on = (name: string, work: () => Promise<void>): Fault => ({
		name,
		run: () => touched.during("cut off", undefined, work),
	});
	const away = async (how: "stop" | "crash", ms: number) => {
		await postgres[how]();
		await Bun.sleep(ms);
		await postgres.start();
	};
	return [
		on("Postgres stopped, shorter than the leases", () => away("stop", short(random))),
		on("Postgres stopped, longer than the leases", () => away("stop", long(random))),
		on("Postgres kill -9, restarted at once", () => away("crash", 0)),
		on("Postgres kill -9, restarted later", () => away("crash", short(random))),
		on("Postgres paused (SIGSTOP)", async () => {
			postgres.pause();
			await Bun.sleep(random.fraction() < 0.7 ? short(random) : long(random));
			postgres.resume();
		}),
	];
}
