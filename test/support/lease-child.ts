import { join } from "node:path";
import { waitFor } from "./wait.ts";

/** `instance-lease-child.ts` as a process. */
export interface LeaseChild {
	readonly process: ReturnType<typeof Bun.spawn>;
	/** Sends a command and waits for the line that answers it. */
	ask(command: string, answer: string): Promise<string>;
	heard(line: string): Promise<string>;
	/** `kill -9`, if it still runs. */
	end(): Promise<void>;
}

/** Resolves once it is live. */
export async function startLeaseChild(options: {
	url: string;
	dataDir: string;
	instanceId: string;
	ttlMs: number;
}): Promise<LeaseChild> {
	const { url, dataDir, instanceId, ttlMs } = options;
	const script = join(import.meta.dir, "instance-lease-child.ts");
	const child = Bun.spawn([process.execPath, script, url, dataDir, instanceId, String(ttlMs)], {
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
	const started: LeaseChild = {
		process: child,
		heard,
		ask(command, answer) {
			child.stdin.write(`${command}\n`);
			child.stdin.flush();
			return heard(answer);
		},
		async end() {
			child.kill("SIGKILL");
			await child.exited;
		},
	};
	try {
		await heard("live");
		return started;
	} catch (error) {
		await started.end();
		throw error;
	}
}
