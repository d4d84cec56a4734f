import { useEffect, useMemo, useRef, useState } from "react";
import { Find } from "./find.tsx";
import { destinationsFor, OPERATOR_DESTINATIONS, PUBLIC_DESTINATIONS } from "./navigation.ts";
import { Dialog } from "./parts/dialog.tsx";
import { navigate } from "./router.tsx";
import { useSession } from "./session.tsx";
import { t } from "./texts.tsx";

/** Time for the second key after `g`; a busy page receives both late. */
const CHORD_MS = 1_000;

/**
 * Keys on every page: `/` focuses its search or opens the finder, `g` and a letter navigates, `?` lists them. Not while
 * the user types.
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
					if (place.apart) location.assign(place.to);
					else navigate(place.to);
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
			<Dialog opened={listed} onClose={() => setListed(false)} title={t("Keyboard")}>
				<dl className="facts">
					{[
						["?", t("This list")],
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

function isTyping(target: EventTarget | null): boolean {
	return (
		target instanceof HTMLElement &&
		(target.isContentEditable || ["INPUT", "TEXTAREA", "SELECT"].includes(target.tagName))
	);
}
