import { readFileSync } from "node:fs";
import { join } from "node:path";

const TEXT = readFileSync(join(import.meta.dir, "../../Dockerfile"), "utf8").replaceAll("\\\n", " ");
const LAST_STAGE = TEXT.slice(TEXT.lastIndexOf("\nFROM "));

const words = (instruction: string): string[] =>
	JSON.parse(new RegExp(`^${instruction} (\\[.*\\])$`, "m").exec(LAST_STAGE)?.[1] ?? "[]");

export const image = {
	env: Object.fromEntries(
		[...(/^ENV (.*)$/m.exec(LAST_STAGE)?.[1] ?? "").matchAll(/(\w+)=(\S+)/g)].map(([, name = "", value = ""]) => [
			name,
			value,
		]),
	) as Record<string, string>,
	uid: Number(/^USER (\d+):\1$/m.exec(LAST_STAGE)?.[1]),
	volume: /^VOLUME (\S+)$/m.exec(LAST_STAGE)?.[1] as string,
	workdir: /^WORKDIR (\S+)$/m.exec(LAST_STAGE)?.[1] as string,
	command: [...words("ENTRYPOINT"), ...words("CMD")],
	stopSignal: /^STOPSIGNAL (\S+)$/m.exec(LAST_STAGE)?.[1] as NodeJS.Signals,
};
