import { readFileSync } from "node:fs";
import { join } from "node:path";

const TEXT = readFileSync(join(import.meta.dir, "../../Dockerfile"), "utf8").replaceAll("\\\n", " ");
/** Of the stage that is kept. */
const LAST_STAGE = TEXT.slice(TEXT.lastIndexOf("\nFROM "));

const words = (instruction: string): string[] =>
	JSON.parse(new RegExp(`^${instruction} (\\[.*\\])$`, "m").exec(LAST_STAGE)?.[1] ?? "[]");

/** What the image says of itself. */
export const image = {
	env: Object.fromEntries(
		[...(/^ENV (.*)$/m.exec(LAST_STAGE)?.[1] ?? "").matchAll(/(\w+)=(\S+)/g)].map(([, name = "", value = ""]) => [
			name,
			value,
		]),
	) as Record<string, string>,
	/** Both of the user and of its group. */
	uid: Number(/^USER (\d+):\1$/m.exec(LAST_STAGE)?.[1]),
	/** Where it may write. */
	volume: /^VOLUME (\S+)$/m.exec(LAST_STAGE)?.[1] as string,
	workdir: /^WORKDIR (\S+)$/m.exec(LAST_STAGE)?.[1] as string,
	/** The whole command. */
	command: [...words("ENTRYPOINT"), ...words("CMD")],
	stopSignal: /^STOPSIGNAL (\S+)$/m.exec(LAST_STAGE)?.[1] as NodeJS.Signals,
};
