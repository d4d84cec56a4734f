/** Assigns processes to processor cores and describes the machine. */
import { writeFileSync } from "node:fs";
import { availableParallelism, constants, cpus, release, setPriority, totalmem } from "node:os";

/** Core of the gateway alone, and core of everything else; null where processes cannot be pinned. */
const CORES = availableParallelism() >= 2 && Bun.which("taskset") ? { gateway: 0, rest: 1 } : null;

/** The command line that runs `argv` on the gateway's core. */
export function onGatewayCore(argv: readonly string[]): string[] {
	return CORES ? ["taskset", "-c", String(CORES.gateway), ...argv] : [...argv];
}

/** Moves this process, and its later children, to the other core. */
export function moveToRestCore(): void {
	if (CORES)
		Bun.spawnSync(["taskset", "-a", "-p", "-c", String(CORES.rest), String(process.pid)], { stdout: "ignore" });
}

/**
 * Gives these processes lower priority than all others on their core. Linux may share a core among sessions first, and
 * each PostgreSQL backend is its own session.
 */
export function letOthersPass(pids: readonly number[]): void {
	const last = constants.priority.PRIORITY_LOW;
	for (const pid of pids) {
		try {
			setPriority(pid, last);
			writeFileSync(`/proc/${pid}/autogroup`, String(last));
		} catch {
			// The process has ended or belongs to another user, or the kernel has no such groups.
		}
	}
}

/** The command line that runs `argv` on any free core. */
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
