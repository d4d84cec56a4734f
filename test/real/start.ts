/** Makes a model of random weights, and starts a model server with it. */
import { join } from "node:path";
import { waitFor } from "../support/wait.ts";
import type { Place, RealServer } from "./servers.ts";

/** Longest start, because some servers first load a gigabyte of modules. */
const START_MS_MAX = 240_000;

/** Returns the model's file or folder. */
export function makeModel(
	format: RealServer["format"],
	{ folder, python, contextLength }: { folder: string; python: string; contextLength: number },
): string {
	const [maker, made] = format === "gguf" ? ["tiny_gguf.py", "tiny.gguf"] : ["tiny_hf.py", "tiny"];
	const file = join(folder, made);
	succeed([python, join(import.meta.dir, maker), file, String(contextLength)]);
	return file;
}

/** Starts the server in its own process group, because some servers run the model in another process. */
export function startServer(server: RealServer, place: Place) {
	const log = join(place.folder, `server-${place.port}.log`);
	const child = Bun.spawn([...server.command(place)], {
		cwd: place.folder,
		env: { ...process.env, ...server.env?.(place) },
		stdout: "ignore",
		stderr: Bun.file(log),
		detached: true,
	});
	return {
		async end() {
			try {
				process.kill(-child.pid, "SIGKILL");
			} catch {
				// The group has ended by itself.
			}
			await child.exited;
		},
		async answers() {
			const models = `http://127.0.0.1:${place.port}/v1/models`;
			let isAnswered = false;
			const isOver = async () => {
				isAnswered = await fetch(models).then(
					({ ok }) => ok,
					() => false,
				);
				return isAnswered || child.exitCode !== null;
			};
			await waitFor(isOver, "the model server to start", START_MS_MAX).catch(() => {});
			if (!isAnswered) throw new Error(`the model server did not start: ${await Bun.file(log).text()}`);
		},
	};
}

export function succeed(command: readonly string[], env: NodeJS.ProcessEnv = process.env): void {
	const { exitCode, stderr } = Bun.spawnSync([...command], { env });
	if (exitCode !== 0) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
}
