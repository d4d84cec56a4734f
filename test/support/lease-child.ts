import { join } from "node:path";
import type { TestDatabase } from "./database.ts";
import { waitFor } from "./wait.ts";

export type LeaseChild = Awaited<ReturnType<typeof startLeaseChild>>;

export async function startLeaseChild(options: {
	db: TestDatabase;
	dataDir: string;
	instanceId: string;
	ttlMs: number;
}) {
	const { db, dataDir, instanceId, ttlMs } = options;
	const script = join(import.meta.dir, "instance-lease-child.ts");
	const child = Bun.spawn([process.execPath, script, db.url, dataDir, instanceId, String(ttlMs)], {
		stdin: "pipe",
		stdout: "pipe",
		stderr: "inherit",
	});
	let output = "";
	void (async () => {
		const decoder = new TextDecoder();
		for await (const chunk of child.stdout) output += decoder.decode(chunk, { stream: true });
	})();
	const heard = async (line: string) => {
		await waitFor(() => output.split("\n").some((text) => text.startsWith(line)), `the child to say ${line}`);
		return output.split("\n").find((text) => text.startsWith(line)) as string;
	};
	let ended: Promise<void> | undefined;
	async function kill(): Promise<void> {
		child.kill("SIGKILL");
		await child.exited;
		const connected = () => db.sql`
			select 1 from pg_stat_activity
			where datname = current_database() and starts_with(application_name, ${`lease child ${instanceId} `})`;
		await waitFor(async () => (await connected()).length === 0, "its last statements to be over");
	}
	const started = {
		process: child,
		heard,
		/** Sends a command and waits for the line that starts with `answer`. */
		ask(command: string, answer: string): Promise<string> {
			child.stdin.write(`${command}\n`);
			child.stdin.flush();
			return heard(answer);
		},
		/** Sends commands of requests, such as `open a 100`, one after the other, and waits for each. */
		async acts(...commands: readonly string[]): Promise<void> {
			for (const command of commands) {
				const [act = "", request] = command.split(" ");
				await started.ask(command, `${act.replace(/e?$/, "ed")} ${request}`);
			}
		},
		/**
		 * Kills the process if it is still running. Resolves once Postgres has finished its statements: a late heartbeat
		 * would otherwise extend a lease that a test saw end.
		 */
		end: (): Promise<void> => (ended ??= kill()),
	};
	try {
		await heard("live");
		return started;
	} catch (error) {
		await started.end();
		throw error;
	}
}
