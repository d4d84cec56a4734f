import type { AlertType } from "../console/views.ts";

/** Who is told, as a form has it. */
export interface NoticeForm {
	readonly mail: "maker" | "owners" | null;
	readonly webhookUrl: string | null;
	readonly events: readonly AlertType[];
}

/** What is not named stays as it is then. */
export interface NoticeChanges {
	mail?: NoticeForm["mail"];
	webhookUrl?: string | null;
	eventsAdded?: AlertType[];
	eventsRemoved?: AlertType[];
}

/** What was changed of a form, and nothing that another tab may have changed since. */
export function noticeChanges(before: NoticeForm, wanted: NoticeForm): NoticeChanges {
	const { mail, webhookUrl, events } = wanted;
	const added = events.filter((type) => !before.events.includes(type));
	const removed = before.events.filter((type) => !events.includes(type));
	return {
		...(mail === before.mail ? {} : { mail }),
		...(webhookUrl === before.webhookUrl ? {} : { webhookUrl }),
		...(added.length === 0 ? {} : { eventsAdded: added }),
		...(removed.length === 0 ? {} : { eventsRemoved: removed }),
	};
}
