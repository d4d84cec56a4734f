import { Select, SimpleGrid, Stack } from "@mantine/core";
import { useEffect, useState } from "react";
import { api, type KeyView, type ModelView } from "../../api.ts";
import { canSend } from "../../key-use.ts";
import { keyLabel } from "../../labels.ts";
import { CodeTabs } from "../../parts/code.tsx";
import { ActButton } from "../../parts/form.tsx";
import { Empty, LoadState, Notice, Page, PageWaiting, Panel } from "../../parts/page.tsx";
import { useResource } from "../../resource.ts";
import { useQueryState } from "../../router.tsx";
import { useAccount, useModels, useSession } from "../../session.tsx";
import { chatSnippets } from "../../snippets/chat.ts";
import { t } from "../../texts.tsx";
import { Composer } from "./composer.tsx";
import {
	type ChatSetup,
	chatBody,
	FRESH_SETUP,
	readSchema,
	readTools,
	type Turn,
	unansweredCalls,
} from "./conversation.ts";
import { SetupForm } from "./setup-form.tsx";
import { isSharedFragment, readShareLink, type SharedConversation, toShareLink } from "./share-link.ts";
import { ThreadView } from "./thread.tsx";
import { type Thread, useThread } from "./use-thread.ts";

const FRESH: SharedConversation = { threads: [], setup: FRESH_SETUP };

export default function PlaygroundPage() {
	const account = useAccount();
	const models = useModels();
	const keys = useResource(`keys ${account.id}`, () => api.keys(account.id));
	const link = useSharedLink();
	const usable = keys.data?.items.filter(canSend);
	if (usable?.length === 0) {
		return (
			<Page title={t("Playground")}>
				<Panel>
					<Empty
						title={t("The playground requires a key.")}
						action={<ActButton label={t("Create a key")} look="main" to="/keys?create=1" />}
					>
						{t("Its requests are charged to one of your keys, within the key's cap and allowed models.")}
					</Empty>
				</Panel>
			</Page>
		);
	}
	if (link.state === "reading") return <PageWaiting />;
	return (
		<Page title={t("Playground")} lead={t("Requests are charged to the selected key. Messages are not stored.")}>
			<LoadState of={models} />
			<LoadState of={keys} />
			{link.state === "broken" && <Notice kind="warn">{t("The conversation in this link cannot be read.")}</Notice>}
			{link.state === "read" && <Notice>{t("Opened from a link. Nothing is sent until you send a message.")}</Notice>}
			<Conversation
				key={link.state}
				start={link.state === "read" ? link.shared : FRESH}
				keys={usable ?? []}
				models={models.data?.items.filter((model) => model.modes.includes("chat")) ?? []}
			/>
		</Page>
	);
}

type SharedLink =
	| { readonly state: "none" | "reading" | "broken" }
	| { readonly state: "read"; readonly shared: SharedConversation };

/** Reads the shared conversation from the URL's fragment, then removes the fragment from the URL. */
function useSharedLink(): SharedLink {
	const [link, setLink] = useState<SharedLink>({ state: isSharedFragment(location.hash) ? "reading" : "none" });
	useEffect(() => {
		const read = () => {
			const fragment = location.hash;
			if (!isSharedFragment(fragment)) return;
			history.replaceState(history.state, "", location.pathname + location.search);
			setLink({ state: "reading" });
			void readShareLink(fragment).then((shared) => setLink(shared ? { state: "read", shared } : { state: "broken" }));
		};
		read();
		addEventListener("hashchange", read);
		return () => removeEventListener("hashchange", read);
	}, []);
	return link;
}

/** A conversation with one model, or with two models that get the same messages. The URL names models and key. */
function Conversation(props: { start: SharedConversation; keys: readonly KeyView[]; models: readonly ModelView[] }) {
	const { start, keys, models } = props;
	const account = useAccount();
	const { key, offered, model, other, change } = useChosen(start, keys, models);
	const [setup, setSetup] = useState(start.setup);
	const [showCode, setShowCode] = useState(false);

	const address = key && api.playgroundAddress(account.id, key.id);
	const first = useThread(address, model, setup, start.threads[0]?.turns ?? []);
	const second = useThread(address, other, setup, start.threads[1]?.turns ?? []);
	const threads = [...(model ? [{ model, thread: first }] : []), ...(other ? [{ model: other, thread: second }] : [])];
	const asked = threads.map((item) => item.model);
	const busy = threads.some(({ thread }) => thread.busy);
	const isWrong = readTools(setup.tools).problem !== undefined || readSchema(setup.schema).problem !== undefined;
	const isReady = key !== undefined && threads.length > 0 && !isWrong;
	const waits = threads.some(({ thread }) => unansweredCalls(thread.turns).length > 0);

	function each(act: (thread: Thread) => void): void {
		for (const { thread } of threads) act(thread);
	}
	function compareWith(id: string | null): void {
		// A second model starts with a copy of the first model's conversation.
		if (id !== null && other === undefined) second.set(first.turns);
		if (id === null) second.stop();
		change({ with: id ?? NONE });
	}
	return (
		<div className="side-by-side">
			<Panel
				title={t("Conversation")}
				aside={
					<>
						<CopyLink
							shared={{ setup, threads: threads.map((item) => ({ model: item.model.id, turns: item.thread.turns })) }}
							disabled={first.turns.length === 0 || busy}
						/>
						<ActButton
							label={showCode ? t("Hide the code") : t("Show as code")}
							pressed={showCode}
							onClick={() => setShowCode(!showCode)}
						/>
						<ActButton
							label={t("Clear")}
							disabled={busy || threads.every(({ thread }) => thread.turns.length === 0)}
							onClick={() => each((thread) => thread.set([]))}
						/>
					</>
				}
			>
				<Stack gap={14}>
					<SimpleGrid minColWidth="min(100%, 300px)" autoFlow="auto-fit" spacing="lg">
						{threads.map(({ model: { id, name }, thread }, place) => (
							<ThreadView key={place === 0 ? "first" : "second"} name={name || id} thread={thread} />
						))}
					</SimpleGrid>
					<Composer
						pictures={asked.length > 0 && asked.every((item) => item.inputModalities.includes("image"))}
						state={busy ? "busy" : waits ? "waiting" : isReady ? "ready" : "off"}
						onSend={(turn) => each((thread) => thread.ask([turn]))}
						onStop={() => each((thread) => thread.stop())}
					/>
					{showCode && model && <AsCode model={model} turns={first.turns} setup={setup} />}
				</Stack>
			</Panel>
			<Panel title={t("Request")}>
				<Stack gap="sm">
					<Select
						label={t("Model")}
						data={choices(offered)}
						searchable
						allowDeselect={false}
						value={model?.id ?? null}
						onChange={(value) => change({ model: value })}
					/>
					<Select
						label={t("Compare with")}
						placeholder={t("No second model")}
						data={choices(offered)}
						searchable
						clearable
						clearButtonProps={{ "aria-label": t("Stop comparing") }}
						value={other?.id ?? null}
						onChange={compareWith}
					/>
					{asked.some((item) => item.status === "unavailable") && (
						<Notice kind="warn">
							{asked.length > 1
								? t("One of the models is not connected right now.")
								: t("This model is not connected right now.")}
						</Notice>
					)}
					<Select
						label={t("Key")}
						data={keys.map((item) => ({ value: item.id, label: keyLabel(item) }))}
						allowDeselect={false}
						value={key?.id ?? null}
						onChange={(value) => change({ key: value })}
					/>
					<SetupForm models={asked} setup={setup} onChange={setSetup} />
				</Stack>
			</Panel>
		</div>
	);
}

/** Returns key and models: those in the URL, else those of the shared link, else the first connected model. */
function useChosen(start: SharedConversation, keys: readonly KeyView[], models: readonly ModelView[]) {
	const [query, change] = useQueryState();
	const key = keys.find((item) => item.id === query.get("key")) ?? keys[0];
	const offered = models.filter(
		(model) => key === undefined || key.models.length === 0 || key.models.includes(model.id),
	);
	const named = (id: string | null | undefined) => offered.find((item) => item.id === id);
	const model =
		named(query.get("model") ?? start.threads[0]?.model) ??
		offered.find((item) => item.status === "connected") ??
		offered[0];
	// `with=none` in the URL removes the second model, even if the shared link has one.
	return { key, offered, model, other: named(query.has("with") ? query.get("with") : start.threads[1]?.model), change };
}

/** Value of the URL parameter `with` for a conversation with one model. */
const NONE = "none";

const choices = (models: readonly ModelView[]) => models.map(({ id, name }) => ({ value: id, label: name }));

const EXAMPLE: readonly Turn[] = [{ role: "user", content: t("Hello!"), pictures: [] }];
const PICTURE_CHARS_SHOWN = 60;
const SAID_MS = 4_000;

function AsCode({ model, turns, setup }: { model: ModelView; turns: readonly Turn[]; setup: ChatSetup }) {
	const { config } = useSession();
	// The turns of a repeated request: all up to the last question, without its answer.
	const asked = turns.slice(0, turns.findLastIndex(({ role }) => role !== "assistant") + 1);
	const body = chatBody(model, asked.length === 0 ? EXAMPLE : asked.map(shortened), setup);
	const { model: id, messages, ...options } = body;
	const isShortened = asked.some((turn) => turn.role === "user" && turn.pictures.length > 0);
	return (
		<>
			{isShortened && <Notice>{t("Image data is shortened in this code.")}</Notice>}
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

/** Button that copies a link to the conversation, and says which contents the link omits. */
function CopyLink({ shared, disabled }: { shared: SharedConversation; disabled: boolean }) {
	const [said, setSaid] = useState<string>();
	async function copy(): Promise<void> {
		setSaid(await copied(shared));
		setTimeout(() => setSaid(undefined), SAID_MS);
	}
	return (
		<ActButton
			label={<span aria-live="polite">{said ?? t("Copy as link")}</span>}
			disabled={disabled}
			onClick={() => void copy()}
		/>
	);
}

async function copied(shared: SharedConversation): Promise<string> {
	const { url, leftOut } = await toShareLink(shared, location.origin + location.pathname);
	if (url === undefined) return t("Too long for a link: use the code.");
	try {
		await navigator.clipboard.writeText(url);
	} catch {
		return t("The browser blocked copying.");
	}
	return leftOut === 0 ? t("Copied.") : t("Copied, without the images.");
}
