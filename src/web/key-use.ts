import type { KeyView } from "./views.ts";

type Used = Pick<KeyView, "state" | "readsOnly" | "projectState">;

/** True if the key's project is archived: all its requests are refused, whatever the key's state. */
export const isProjectArchived = ({ state, projectState }: Pick<Used, "state" | "projectState">): boolean =>
	state === "active" && projectState === "archived";

/** True if the key can call models. */
export const canSend = (key: Used): boolean => key.state === "active" && !isProjectArchived(key) && !key.readsOnly;
