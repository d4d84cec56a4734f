/** Pins processes to CPU cores and describes the machine. */
import { writeFileSync } from "node:fs";
import { availableParallelism, constants, cpus, release, setPriority, totalmem } from "node:os";

/** Core of the gateway and core of all other processes; null if processes cannot be pinned. */
const CORES = availableParallelism() >= 2 && Bun.which("taskset") ? { gateway: 0, rest: 1 } : null;

/** The command line that runs `argv` on the gateway's core. */
export function onGatewayCore(argv: readonly string[]): string[] {
	return CORES ? ["taskset", "-c", String(CORES.gateway), ...argv] : [...argv];
}

/** Pins this process, and child processes that it starts later, to the core that the gateway does not use. */
export function moveToRestCore(): void {
	if (CORES)
		Bun.spawnSync(["taskset", "-a", "-p", "-c", String(CORES.rest), String(process.pid)], { stdout: "ignore" });
}

/**
 * Lowers the priority of these processes on their core. Includes every Postgres backend, each a session of its own to
 * Linux' scheduler.
 */
export function lowerPriority(pids: readonly number[]): void {
	const last = constants.priority.PRIORITY_LOW;
	for (const pid of pids) {
		try {
			setPriority(pid, last);
			writeFileSync(`/proc/${pid}/autogroup`, String(last));
		} catch {
			// Fails if the process has ended or belongs to another user, or if the kernel has no such groups.
		}
	}
}

/** The command line that runs `argv` on any core. */
export function onAnyCore(argv: readonly string[]): string[] {
	return CORES ? ["taskset", "-c", `0-${availableParallelism() - 1}`, ...argv] : [...argv];
}

export function describeMachine() {
	return {
		cpu: cpus()[0]?.model ?? "unknown",
		cores: cpus().length,
		memoryGb: Math.round(totalmem() / 1e9),
		kernel: release(),
		pinned: CORES
			? `gateway alone on core ${CORES.gateway}, everything else on core ${CORES.rest}`
			: "not pinned: gateway and load share the cores",
		bun: Bun.version,
		nginx: versionOf("nginx", "-v", /nginx\/([\d.]+)/),
	};
}

function versionOf(program: string, flag: string, pattern: RegExp): string | null {
	if (!Bun.which(program)) return null;
	const { stdout, stderr } = Bun.spawnSync([program, flag]);
	return pattern.exec(`${stdout}${stderr}`)?.[1] ?? "unknown";
}
