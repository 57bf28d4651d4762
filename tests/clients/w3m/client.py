"""w3m: a text browser. A large generated page with what pages have: tables in tables, lists, links, entities."""

from harness.model import PLAIN, START_UP, Client, Command, Failed, Place, check_output

PACKAGES = ["w3m"]
WORDS = ("jackdaw stone tower nest twig silver feather wind chimney field moss river evening rain "
         "orchard &eacute;toile na&iuml;ve 文字 Ünïcödé &lt;tag&gt; &amp;").split()


def words(start: int, count: int) -> str:
    return " ".join(WORDS[(start * 7 + i * (start % 5 + 1)) % len(WORDS)] for i in range(count))


def write_page(place: Place) -> None:
    parts = ["<!DOCTYPE html><html><head><meta charset='utf-8'><title>A large page</title></head><body>"]
    for i in range(place.pick(700, 25)):
        parts.append(f"<h2 id='s{i}'>Section {i}: {words(i, 4)}</h2>")
        parts.append(f"<p>{words(i, 120)} <a href='#s{i // 2}'>link {i}</a> <b>{words(i + 1, 9)}</b></p>")
        rows = "".join(
            f"<tr><td>{r}</td><td>{words(i + r, 6)}</td><td><table><tr><td>{words(r, 2)}</td>"
            f"<td>{r * i}</td></tr></table></td></tr>" for r in range(12))
        parts.append(f"<table border='1'><tr><th>n</th><th>text</th><th>more</th></tr>{rows}</table>")
        parts.append("<ul>" + "".join(f"<li>{words(r, 5)}<ol><li>{words(r + 1, 3)}</ol>"
                                      for r in range(8)) + "</ul>")
        parts.append(f"<form><input name='f{i}' value='{i}'><select><option>{words(i, 1)}"
                     "<option>other</select></form>")
        parts.append(f"<pre>{words(i, 6)}\n    {words(i + 2, 6)}\n</pre><hr>")
    (place.prepared / "page.html").write_text("\n".join(parts) + "</body></html>\n")
    (place.prepared / "empty.html").write_text("<html><body>Nothing here.</body></html>\n")


def dump(page: str, columns: int):
    def command(place: Place) -> Command:
        return Command(["w3m", "-dump", "-T", "text/html", "-I", "UTF-8", "-O", "UTF-8", "-cols",
                        str(columns), str(place.prepared / page)])
    return command


def check_page(output: str, place: Place) -> None:
    last = place.pick(700, 25) - 1
    for text in (f"Section {last}:", f"link {last}", "étoile", "<tag>", "文字", f"{11 * last}"):
        if text not in output:
            raise Failed(f"'{text}' is not on the page")


CLIENTS = [
    Client(name="w3m-page", title="w3m: dump a large page", packages=PACKAGES, programs=["w3m"],
           prepare=write_page, command=dump("page.html", 100), check=check_page, goal=PLAIN),
    Client(name="w3m-start", title="w3m: dump a page of two words", packages=PACKAGES, programs=["w3m"],
           prepare=write_page, command=dump("empty.html", 80),
           check=check_output("Nothing here.\n"), goal=START_UP, repeat=10),
]
