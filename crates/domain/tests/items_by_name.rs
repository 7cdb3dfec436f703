//! From the names of what was bought back to where it lies.

use domain::layout::{Edition, items_of, reserved_places};
use domain::sale::{Problem, Sale, check};

fn sale(rows: &str, general: bool) -> Result<Sale, Vec<Problem>> {
    let general = if general { r#", {"id": "g", "name": "G", "price": 10, "capacity": 5}"# } else { "" };
    let text = format!(
        r#"{{"eventId": "e", "title": "E", "opensAt": 1790000000000, "closesAt": 1790003600000,
            "anonymous": "accepted", "admission": {{"perSecond": 10, "maxActive": 100}},
            "offerings": [{{"id": "o", "date": "2026-09-24", "sections": [
                {{"id": "a", "name": "A", "price": 100, "seats": [{{"rows": "{rows}", "seats": "A-B"}}]}}{general}]}}]}}"#
    );
    check(&text)
}

#[test]
fn names_lead_to_where_their_places_lie_also_when_they_are_off_sale() {
    let (first, _) = Edition::first(sale("1-2", true).unwrap());
    let (without, _) = first.next(sale("2", false).unwrap()).unwrap();
    let (back, _) = without.next(sale("1-2", false).unwrap()).unwrap();
    let items: domain::items::Items = "0@70=3,4;1@10*2;0@90=0".parse().unwrap();
    let places = reserved_places(&first.layout, &items).unwrap();
    for edition in [&first, &without] {
        assert_eq!(items_of(&edition.layout, &places), Ok(items.clone()), "version {}", edition.version);
    }
    // Row 1 has come back behind the others: its name means the place that is on sale.
    assert_eq!(items_of(&back.layout, &places).unwrap().to_string(), "0@70=3,4;1@10*2;0@90=6");
    let mut unknown = places;
    unknown[0].seats[0] = "9Z".parse().unwrap();
    assert_eq!(
        items_of(&first.layout, &unknown).unwrap_err().to_string(),
        "no such place in the layout: o/a 9Z"
    );
}
