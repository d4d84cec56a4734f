import { Group, Stack, TextInput } from "@mantine/core";
import { useEffect, useMemo, useRef, useState } from "react";
import { api } from "./api.ts";
import type { MenuEntry } from "./navigation.ts";
import { destinationsFor, OPERATOR_DESTINATIONS, PUBLIC_DESTINATIONS } from "./navigation.ts";
import { Dialog } from "./parts/dialog.tsx";
import { Form } from "./parts/form.tsx";
import { useResource } from "./resource.ts";
import { Link, navigate } from "./router.tsx";
import { useModels, useSession } from "./session.tsx";
import { t } from "./texts.tsx";

/** Longest time between `g` and the second key. One second, because a busy page receives both keys late. */
const CHORD_MS = 1_000;

/**
 * Keyboard shortcuts: `/` focuses the search or opens the finder, `g` and a letter opens a page, `?` lists them.
 * Inactive while the user types in a field.
 */
export function Shortcuts() {
	const { me } = useSession();
	const [listed, setListed] = useState(false);
	const [finding, setFinding] = useState(false);
	const goneAt = useRef(Number.NEGATIVE_INFINITY);
	const isViewer = me !== undefined;
	const role = me?.account?.role;
	const operator = me?.user.operator ?? false;
	const places = useMemo(
		() => [...(isViewer ? destinationsFor(role) : PUBLIC_DESTINATIONS), ...(operator ? OPERATOR_DESTINATIONS : [])],
		[isViewer, role, operator],
	);

	useEffect(() => {
		function press(event: KeyboardEvent) {
			if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return;
			if (document.querySelector('[role="dialog"]')) return;
			if (event.timeStamp - goneAt.current < CHORD_MS) {
				goneAt.current = Number.NEGATIVE_INFINITY;
				const place = places.find((item) => item.key === event.key);
				if (place) {
					event.preventDefault();
					openPlace(place);
				}
				return;
			}
			if (event.key === "g") goneAt.current = event.timeStamp;
			if (event.key === "?") setListed(true);
			if (event.key === "/") {
				event.preventDefault();
				const search = document.querySelector<HTMLInputElement | HTMLTextAreaElement>("[data-search]");
				if (search === null) return setFinding(true);
				search.focus();
				search.select();
			}
		}
		addEventListener("keydown", press);
		return () => removeEventListener("keydown", press);
	}, [places]);

	return (
		<>
			<Find opened={finding} places={places} onClose={() => setFinding(false)} />
			<Dialog opened={listed} onClose={() => setListed(false)} title={t("Keyboard shortcuts")}>
				<dl className="facts">
					{[
						["?", t("Show shortcuts")],
						["/", t("Search this page, or find a page, key, model or request")],
						...places.map(({ key, label }) => [`g ${key}`, label]),
					].map(([keys = "", label]) => (
						<div key={keys}>
							<dt>
								<kbd>{keys}</kbd>
							</dt>
							<dd>{label}</dd>
						</div>
					))}
				</dl>
			</Dialog>
		</>
	);
}

const openPlace = ({ to, apart }: Pick<Found, "to" | "apart">) => (apart ? location.assign(to) : navigate(to));

function isTyping(target: EventTarget | null): boolean {
	return (
		target instanceof HTMLElement &&
		(target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName))
	);
}

/** Most matches that are shown. */
const SHOWN_MAX = 10;
const AT_ONCE = { duration: 0 };

interface Found {
	readonly to: string;
	readonly name: string;
	readonly kind: string;
	readonly apart?: true;
}

/**
 * Finder of pages, keys, models and requests, for pages without a search. It opens without animation and takes the
 * focus at once, so that no keystroke is lost.
 */
function Find(props: { opened: boolean; places: readonly MenuEntry[]; onClose: () => void }) {
	return (
		<Dialog opened={props.opened} onClose={props.onClose} title={t("Find")} transitionProps={AT_ONCE} returnFocus>
			<Results places={props.places} onGone={props.onClose} />
		</Dialog>
	);
}

function Results({ places, onGone }: { places: readonly MenuEntry[]; onGone: () => void }) {
	const [wanted, setWanted] = useState("");
	const found = useFound(places, wanted.trim());
	function go(one: Found) {
		onGone();
		openPlace(one);
	}
	return (
		<Form onSubmit={() => found[0] && go(found[0])}>
			<TextInput
				label={t("Page, key, model or request id")}
				description={t("Press Enter to open the first result")}
				data-autofocus
				autoFocus
				autoComplete="off"
				value={wanted}
				onChange={(event) => setWanted(event.currentTarget.value)}
			/>
			<Stack component="ul" className="bare" gap="xs" aria-label={t("Results")} aria-live="polite">
				{found.map((one) => (
					<Group component="li" key={`${one.kind} ${one.to}`} justify="space-between">
						{one.apart ? (
							<a href={one.to}>{one.name}</a>
						) : (
							<Link to={one.to} onClick={onGone}>
								{one.name}
							</Link>
						)}
						<span className="dim small">{one.kind}</span>
					</Group>
				))}
			</Stack>
			{found.length === 0 && <p className="dim">{t("No results.")}</p>}
		</Form>
	);
}

function useFound(places: readonly MenuEntry[], wanted: string): Found[] {
	const account = useSession().me?.account;
	const models = useModels();
	const keys = useResource(account ? `keys ${account.id}` : null, () => api.keys(account?.id ?? ""));
	const isRequest = account && /^(req_)?[0-9a-f-]{16,36}$/i.test(wanted);
	const all: Found[] = [
		...places.map(({ to, label, apart }): Found => ({ to, name: label, kind: t("Page"), ...(apart ? { apart } : {}) })),
		...(keys.data?.items ?? []).map(({ id, name }): Found => ({ to: `/keys/${id}`, name, kind: t("Key") })),
		...(models.data?.items ?? []).map(({ id }): Found => ({ to: `/models/${id}`, name: id, kind: t("Model") })),
	];
	const matching = all.filter(({ name }) => name.toLowerCase().includes(wanted.toLowerCase()));
	const request: Found = { to: `/requests/${encodeURIComponent(wanted)}`, name: wanted, kind: t("Request") };
	return [...(isRequest ? [request] : []), ...matching].slice(0, SHOWN_MAX);
}
