import { Button } from "@mantine/core";
import { useState } from "react";
import { CodeTabs } from "../../parts/code.tsx";
import { Notice } from "../../parts/problem.tsx";
import { useSession } from "../../session.tsx";
import { chatSnippets } from "../../snippets/chat.ts";
import { t } from "../../texts.tsx";
import type { ModelView } from "../../views.ts";
import { bodyOf, type ChatSetup, type Turn } from "./conversation.ts";
import { linkOf, type Shared } from "./share-link.ts";

/** Ways to keep a conversation: as code, and as a link. */

const EXAMPLE: readonly Turn[] = [{ role: "user", content: t("Hello!"), pictures: [] }];
const PICTURE_CHARS_SHOWN = 60;
const SAID_MS = 4_000;

export function AsCode({ model, turns, setup }: { model: ModelView; turns: readonly Turn[]; setup: ChatSetup }) {
	const { config } = useSession();
	// The turns that the last request sent, up to the question.
	const asked = turns.slice(0, turns.findLastIndex(({ role }) => role !== "assistant") + 1);
	const body = bodyOf(model, asked.length === 0 ? EXAMPLE : asked.map(shortened), setup);
	const { model: id, messages, ...options } = body;
	const isShortened = asked.some((turn) => turn.role === "user" && turn.pictures.length > 0);
	return (
		<>
			{isShortened && <Notice>{t("The pictures are shortened here.")}</Notice>}
			<CodeTabs snippets={chatSnippets({ baseUrl: config.baseUrl, model: id, messages, options, stream: true })} />
		</>
	);
}

function shortened(turn: Turn): Turn {
	if (turn.role !== "user") return turn;
	return {
		...turn,
		pictures: turn.pictures.map(({ name, url }) => ({ name, url: `${url.slice(0, PICTURE_CHARS_SHOWN)}…` })),
	};
}

/** Copies the link, and says what it leaves out. */
export function LinkButton({ shared, disabled }: { shared: Shared; disabled: boolean }) {
	const [said, setSaid] = useState<string>();
	async function copy(): Promise<void> {
		setSaid(await copied(shared));
		setTimeout(() => setSaid(undefined), SAID_MS);
	}
	return (
		<Button size="xs" variant="default" disabled={disabled} onClick={() => void copy()}>
			<span aria-live="polite">{said ?? t("Copy as link")}</span>
		</Button>
	);
}

async function copied(shared: Shared): Promise<string> {
	const { url, leftOut } = await linkOf(shared, location.origin + location.pathname);
	if (url === undefined) return t("Too long for a link: use the code.");
	try {
		await navigator.clipboard.writeText(url);
	} catch {
		return t("The browser does not let pages copy.");
	}
	return leftOut === 0 ? t("Copied.") : t("Copied, without the pictures.");
}
